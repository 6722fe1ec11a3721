package io.pyzorder.skipping

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.publish.TableFolder

/** The table folders that a relation's files can lie under. */
object TableListing {

  /**
   * The catalog's location, the relation's paths, and the folders above them while a part looks like
   * a partition's (`day=1`), each with a `_zorder` in it.
   */
  def foldersOf(
      hadoopConf: Configuration,
      rootPaths: Seq[Path],
      tableLocation: Option[Path]): Seq[TableFolder] =
    (tableLocation.toSeq ++ rootPaths).flatMap { path =>
      val fileSystem = path.getFileSystem(hadoopConf)
      val qualified = fileSystem.makeQualified(path)
      Iterator.iterate(qualified)(_.getParent)
        .takeWhile(p => p != null && (p == qualified || looksInside(p, qualified))).toSeq
    }.distinct.filter { path =>
      path.getFileSystem(hadoopConf).exists(new Path(path, TableFolder.Name))
    }.map(new TableFolder(_))

  /** Whether each part of `inner` below `outer` is a partition's, or the last one a file. */
  private def looksInside(outer: Path, inner: Path): Boolean = {
    val below = inner.toUri.getPath.stripPrefix(outer.toUri.getPath).split('/').filter(_.nonEmpty)
    below.init.forall(_.contains("=")) &&
      (below.last.contains("=") || below.last.contains("."))
  }
}
