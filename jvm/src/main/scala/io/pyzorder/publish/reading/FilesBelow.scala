package io.pyzorder.publish.reading

import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.storage.FilesByFolder

/**
 * Groups files by root path. A file belongs to the root path that is the file's own path or one of
 * its ancestors.
 */
private[reading] object FilesBelow {

  /**
   * @param paths the root paths of a listing, none of which is at or below another
   * @param none  the result for paths without files
   */
  def apply(
      files: Seq[FileStatus],
      paths: Set[Path],
      none: Map[Path, Seq[FileStatus]]): Map[Path, Seq[FileStatus]] = {
    val folders = FilesByFolder(files).toSeq
    val found = folders.flatMap { case (folder, each) =>
      upwards(folder).find(paths) match {
        case Some(path) => Seq(path -> each)
        case None => each.filter(file => paths(file.getPath)).map(file => file.getPath -> Seq(file))
      }
    }
    none ++ found.groupBy(_._1).map { case (path, several) => path -> several.flatMap(_._2) }
  }

  private def upwards(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)
}
