package io.pyzorder.publish.reading

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.types.StructType

/** The files of two listings of one relation. The listings have no root path in common. */
private[reading] final class JoinedFileIndex(one: FileIndex, other: FileIndex) extends FileIndex {

  override def rootPaths: Seq[Path] = one.rootPaths ++ other.rootPaths

  override def partitionSchema: StructType = one.partitionSchema

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] =
    one.listFiles(partitionFilters, dataFilters) ++ other.listFiles(partitionFilters, dataFilters)

  override def inputFiles: Array[String] = one.inputFiles ++ other.inputFiles

  override def sizeInBytes: Long = one.sizeInBytes + other.sizeInBytes

  override def refresh(): Unit = {
    one.refresh()
    other.refresh()
  }
}
