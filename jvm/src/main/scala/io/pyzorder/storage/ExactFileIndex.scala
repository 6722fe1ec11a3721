package io.pyzorder.storage

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, PartitionDirectory
}
import org.apache.spark.sql.types.StructType

/**
 * A file index over a fixed list of files, for pyzorder's own scans. It does not list any folders.
 * pyzorder's rules never wrap it, so neither the journal nor the skipping index is applied to its
 * files.
 *
 * @param rootPath        the path shown by EXPLAIN
 * @param partitionSchema the partition columns, whose values come from `groups`
 * @param groups          each combination of values of the partition columns, and its files
 */
final class ExactFileIndex(
    rootPath: Path,
    override val partitionSchema: StructType,
    groups: Seq[(InternalRow, Seq[FileStatus])])
    extends FileIndex {

  override def rootPaths: Seq[Path] = Seq(rootPath)

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    groups.map { case (values, files) =>
      PartitionDirectory(values, files.map(FileStatusWithMetadata(_)))
    }

  override def inputFiles: Array[String] = groups.flatMap(_._2.map(_.getPath.toString)).toArray

  override def refresh(): Unit = ()

  override def sizeInBytes: Long = groups.iterator.flatMap(_._2).map(_.getLen).sum
}

object ExactFileIndex {

  /** Builds the status of a known file without a request to the store. */
  def status(path: Path, size: Long, modificationTime: Long): FileStatus =
    new FileStatus(size, false, 1, 128L * 1024 * 1024, modificationTime, path)
}
