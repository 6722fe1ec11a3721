package io.pyzorder.commands

import java.nio.charset.StandardCharsets

import org.apache.hadoop.fs.{FileSystem, LocatedFileStatus, Path}

import io.pyzorder.ZOrderErrors

/** Tells the format of a folder's data files: by their names, or by their first bytes. */
object DataFormat {

  /** So many files are looked at, at most. */
  private val enough = 1000

  /** `parquet` or `orc`; throws ZORDER_NO_FILES when no file is either, or they are mixed. */
  def ofFolder(fs: FileSystem, root: Path): String = {
    val files = fs.listFiles(root, true)
    var found = Set.empty[String]
    var looked = 0
    while (files.hasNext && looked < enough && found.size < 2) {
      val file = files.next()
      if (isData(root, file)) {
        looked += 1
        found ++= ofFile(fs, file.getPath, sniff = looked <= 10)
      }
    }
    if (found.isEmpty) throw ZOrderErrors.noFiles(s"'$root'")
    if (found.size > 1) throw ZOrderErrors.mixedFormats(root.toString)
    found.head
  }

  /** Spark's rule: a name that begins with a dot or an underscore hides what is below it. */
  private def isData(root: Path, file: LocatedFileStatus): Boolean =
    file.getLen > 0 && root.toUri.relativize(file.getPath.toUri).getPath.split('/').forall { part =>
      !part.startsWith(".") && !(part.startsWith("_") && !part.contains("="))
    }

  private def ofFile(fs: FileSystem, path: Path, sniff: Boolean): Option[String] =
    if (path.getName.endsWith(".parquet")) Some("parquet")
    else if (path.getName.endsWith(".orc")) Some("orc")
    else if (sniff) ofBytes(fs, path)
    else None

  private def ofBytes(fs: FileSystem, path: Path): Option[String] = {
    val input = fs.open(path)
    try {
      val head = new Array[Byte](4)
      var filled = 0
      var read = 0
      while (filled < head.length && read >= 0) {
        read = input.read(head, filled, head.length - filled)
        if (read > 0) filled += read
      }
      new String(head, 0, filled, StandardCharsets.ISO_8859_1) match {
        case "PAR1" => Some("parquet")
        case text if text.startsWith("ORC") => Some("orc")
        case _ => None
      }
    } finally input.close()
  }
}
