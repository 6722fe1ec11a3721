package io.pyzorder.storage

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}

/** Groups files by folder. The files of a folder keep their order. */
private[pyzorder] object FilesByFolder {

  def apply(files: Seq[FileStatus]): Map[Path, Seq[FileStatus]] = {
    val folders = mutable.LinkedHashMap.empty[Path, mutable.ArrayBuffer[FileStatus]]
    // Successive files are usually in one folder. Comparing two paths is much faster than computing
    // the parent of each.
    var last: Option[(Path, mutable.ArrayBuffer[FileStatus])] = None
    files.foreach { file =>
      val path = file.getPath
      val (folder, others) = last.filter(known => isIn(path, known._1)).getOrElse {
        val parent = path.getParent
        parent -> folders.getOrElseUpdate(parent, mutable.ArrayBuffer.empty)
      }
      others += file
      last = Some(folder -> others)
    }
    folders.iterator.map { case (folder, each) => folder -> each.toSeq }.toMap
  }

  private def isIn(path: Path, folder: Path): Boolean = {
    val (own, above) = (path.toUri, folder.toUri)
    val (name, prefix) = (own.getPath, above.getPath)
    own.getScheme == above.getScheme && own.getAuthority == above.getAuthority &&
    name.startsWith(prefix) && name.length > prefix.length &&
    name.charAt(prefix.length) == '/' && name.indexOf('/', prefix.length + 1) < 0
  }
}
