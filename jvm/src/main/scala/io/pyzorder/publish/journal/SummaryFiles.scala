package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.pyzorder.index.collect.RowCounts
import io.pyzorder.storage.{FileRef, FileSystems, Links, TableFolder}

/**
 * The summary files `_metadata` and `_common_metadata`, in which some Parquet writers store the
 * footers of the files in a folder and its subfolders. A run that replaces files makes the summary
 * files stale, and PyArrow and Dask fail if `_metadata` names a file that is gone. Summary files
 * are therefore retired together with the data files that they describe: the journal lists both
 * kinds of files in `retire`, and a run that moves or restores the data files does the same with
 * the summary files. Summary files do not contain rows, and listings do not show them.
 */
object SummaryFiles {

  private val Names = Seq("_metadata", "_common_metadata")

  /** Whether a file has the name of a summary file. `path` has the form of FileRef.path. */
  def isOne(path: String): Boolean = Names.contains(path.substring(path.lastIndexOf('/') + 1))

  /** The given files, except summary files. */
  def without(files: Seq[FileRef]): Seq[FileRef] = files.filterNot(file => isOne(file.path))

  /**
   * The summary files in `folders`, which are given in the form of FileRef.folder. Lists each
   * folder once.
   */
  def in(hadoopConf: Configuration, table: TableFolder, folders: Seq[String]): Seq[FileRef] =
    folders.distinct.flatMap(folder => list(hadoopConf, table.resolve(folder))).map { file =>
      FileRef(table.relativize(file.getPath), file.getLen, file.getModificationTime)
    }

  /** Deletes a folder's summary files. Called after the folder's data files have been deleted. */
  def delete(hadoopConf: Configuration, folder: Path): Unit =
    list(hadoopConf, folder).foreach(file =>
      folder.getFileSystem(hadoopConf).delete(file.getPath, false))

  private def list(hadoopConf: Configuration, folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder)
      .filter(file => Names.contains(file.getPath.getName) && isParquet(hadoopConf, file))

  /**
   * The folder and its ancestors up to the table's folder. Their summary files may describe the
   * folder's files.
   */
  def around(folder: String): Seq[String] =
    if (folder.isEmpty || TableFolder.isWhole(folder)) Seq(folder)
    else folder +: around(FileRef(folder, 0L, 0L).folder)

  /**
   * Whether the file is a Parquet file. Other files that happen to have the name of a summary file
   * are left alone, and links that Links.strange rejects are not opened.
   */
  private def isParquet(hadoopConf: Configuration, file: FileStatus): Boolean =
    file.isFile && file.getLen > 0 && !Links.strange(file.getPath, file.getPath) &&
      RowCounts.isParquet(hadoopConf, file.getPath, file.getLen)
}
