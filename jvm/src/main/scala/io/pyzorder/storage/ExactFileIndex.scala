package io.pyzorder.storage

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{
  FileIndex, FileStatusWithMetadata, PartitionDirectory
}
import org.apache.spark.sql.types.StructType

/**
 * A file index of exactly the given files, which lists nothing: for pyzorder's own scans. It is
 * never wrapped and nothing is ever pruned from it or laid over it.
 *
 * @param rootPath        what EXPLAIN names
 * @param partitionSchema columns whose values the groups give
 * @param groups          values of the partition columns, with the files that have them
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

  /** The status of a file known already, without asking the store. */
  def status(path: Path, size: Long, modificationTime: Long): FileStatus =
    new FileStatus(size, false, 1, 128L * 1024 * 1024, modificationTime, path)
}
