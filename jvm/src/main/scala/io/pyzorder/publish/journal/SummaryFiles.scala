package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.index.collect.RowCounts
import io.pyzorder.storage.{FileRef, FileSystems, TableFolder}

/**
 * `_metadata` and `_common_metadata`, in which some writers of Parquet keep the footers of the
 * files in a folder and below it. A run that replaces files makes these stale: PyArrow and Dask
 * fail on a file that `_metadata` names and that is gone. So they are retired with the files they
 * describe: the journal lists them among `retire`, and they move and come back as those do. They
 * hold no rows, and no listing shows them.
 */
object SummaryFiles {

  private val Names = Seq("_metadata", "_common_metadata")

  /** Whether a file, named as in FileRef, is one by its name. */
  def isOne(path: String): Boolean = Names.contains(path.substring(path.lastIndexOf('/') + 1))

  /** The data files among these. */
  def without(files: Seq[FileRef]): Seq[FileRef] = files.filterNot(file => isOne(file.path))

  /** Those in folders that are named as in FileRef.folder; one listing a folder. */
  def in(hadoopConf: Configuration, table: TableFolder, folders: Seq[String]): Seq[FileRef] =
    folders.distinct.flatMap(folder => list(hadoopConf, table.resolve(folder))).map { file =>
      FileRef(table.relativize(file.getPath), file.getLen, file.getModificationTime)
    }

  /** Deletes those of a folder whose data files have been deleted. */
  def delete(hadoopConf: Configuration, folder: Path): Unit =
    list(hadoopConf, folder).foreach(file =>
      folder.getFileSystem(hadoopConf).delete(file.getPath, false))

  private def list(hadoopConf: Configuration, folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder)
      .filter(file => Names.contains(file.getPath.getName) && isParquet(hadoopConf, file))

  /** The folder and those around it, up to the table's: what lies there may describe its files. */
  def around(folder: String): Seq[String] =
    if (folder.isEmpty || TableFolder.isWhole(folder)) Seq(folder)
    else folder +: around(FileRef(folder, 0L, 0L).folder)

  /** A file of another kind that has such a name stays. */
  private def isParquet(hadoopConf: Configuration, file: FileStatus): Boolean =
    file.isFile && file.getLen > 0 && RowCounts.isParquet(hadoopConf, file.getPath, file.getLen)
}
