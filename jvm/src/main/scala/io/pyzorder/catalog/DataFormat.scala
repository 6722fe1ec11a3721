package io.pyzorder.catalog

import java.nio.charset.StandardCharsets

import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.{FileSystems, Links, TableFolder}

/** Infers the format of a folder's data files from their names or their first bytes. */
object DataFormat {

  /** The maximum number of files to inspect. */
  private val enough = 1000

  /**
   * Returns `parquet` or `orc`. Throws if no file has either format, or if the folder contains
   * files of both.
   */
  def ofFolder(fs: FileSystem, root: Path): String = {
    val files = dataFiles(fs, root)
    var found = Set.empty[String]
    var looked = 0
    while (looked < enough && found.size < 2 && files.hasNext) {
      looked += 1
      found ++= ofFile(fs, files.next().getPath, sniff = looked <= 10)
    }
    if (found.isEmpty) throw ZOrderErrors.noFiles(s"'$root'")
    if (found.size > 1) throw ZOrderErrors.mixedFormats(root.toString)
    found.head
  }

  /** The full paths of the data files in a folder and its subfolders. */
  def pathsIn(fs: FileSystem, root: Path): Seq[String] =
    dataFiles(fs, root).map(_.getPath.toString).toSeq

  /**
   * Throws if Links.strange rejects a link below a folder. To infer the folder's schema, Spark
   * opens data files and summary files through links, and a command writes the schema into the
   * folder. It would thus reveal columns of a file that the link's owner may not be allowed to
   * read.
   */
  def checkLinks(fs: FileSystem, folder: Path): Unit = if (Links.isLocal(folder)) {
    fs.listStatus(folder).foreach { entry =>
      val name = entry.getPath.getName
      if (isData(name) || SummaryFiles(name)) {
        if (Links.strange(folder, entry.getPath))
          throw ZOrderErrors.strangeLink(entry.getPath.toString)
        if (entry.isDirectory) checkLinks(fs, entry.getPath)
      }
    }
  }

  /**
   * A pipe or a socket for which Spark would wait when it infers the schema of a folder: a data
   * file in an ORC table, or a summary file in a Parquet table.
   */
  def special(fs: FileSystem, root: Path, format: String): Option[Path] = {
    val isRead = if (format == "orc") isData(_) else SummaryFiles(_)
    if (!Links.isLocal(root)) None
    else entries(fs, root, isRead).filter(_.getLen == 0).map(_.getPath).find(FileSystems.isSpecial)
  }

  /** Parquet's summary files, which may contain the schema of all files in a folder. */
  private val SummaryFiles = Set("_metadata", "_common_metadata")

  private def isData(name: String): Boolean = !TableFolder.isHiddenName(name)

  private def dataFiles(fs: FileSystem, folder: Path): Iterator[FileStatus] =
    entries(fs, folder, isData).filter(_.getLen > 0)

  /**
   * The files in a folder and its subfolders whose names pass `isWanted`, including empty files,
   * listed lazily. Hadoop's own recursive listing is not used, because it queries each file's
   * permissions, which starts one process per file on a local disk.
   */
  private def entries(
      fs: FileSystem,
      folder: Path,
      isWanted: String => Boolean): Iterator[FileStatus] =
    fs.listStatus(folder).iterator.flatMap { entry =>
      val name = entry.getPath.getName
      if (!entry.isDirectory) Iterator(entry).filter(_ => isWanted(name))
      else if (isData(name)) entries(fs, entry.getPath, isWanted)
      else Iterator.empty
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
