package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, Expression, Literal}
import org.apache.spark.sql.catalyst.util.quoteIdentifier
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.types.StructType

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The data files of one folder. A table partition, or an unpartitioned table, usually has one
 * folder. With Spark's recursiveFileLookup, it may have several. A rewrite does not move rows to
 * other folders.
 *
 * @param folder the folder that contains these files and will contain the files that replace them.
 *               It has the form that TableFolder.relativize returns
 * @param files  the data files; there is at least one
 */
final case class PartitionFiles(folder: String, files: Seq[FileStatus]) {

  /** The total size of the files in bytes. */
  def size: Long = files.iterator.map(_.getLen).sum
}

object PartitionListing {

  /**
   * The listed files of a table, by folder.
   *
   * @param where predicate that selects partitions; None for all partitions
   */
  def list(
      index: FileIndex,
      table: TableFolder,
      where: Option[Expression]): Seq[PartitionFiles] = {
    val filters = where.toSeq.flatMap(conjuncts)
    val folders = index.listFiles(filters, Nil)
      .flatMap(_.files.map(_.fileStatus).groupBy(_.getPath.getParent))
    folders.map { case (folder, files) =>
      PartitionFiles(table.relativize(folder), files.sortBy(_.getPath).toSeq)
    }.sortBy(_.folder).toSeq
  }

  /**
   * For each folder with data files, an SQL condition that selects the folder's partition. Empty if
   * the table is not partitioned.
   */
  def conditions(
      schema: StructType,
      index: => FileIndex,
      table: TableFolder): Map[String, String] = {
    val columns = schema.fields
    def condition(values: InternalRow): String = columns.zipWithIndex.map { case (column, i) =>
      val value = Literal(values.get(i, column.dataType), column.dataType)
      // <=> is true if both sides are null. The escape stops Spark from substituting variables.
      s"${quoteIdentifier(column.name)} <=> ${value.sql.replace("${", "\\u0024{")}"
    }.mkString(" AND ")
    partitions(schema, index, table).map { case (folder, values) =>
      folder -> condition(values)
    }.toMap
  }

  /**
   * The folders with data files and the values of the partition columns in each. Empty if the table
   * is not partitioned.
   *
   * @param schema the partition columns
   * @param index  a listing of the table; not evaluated if the table is not partitioned
   */
  def partitions(
      schema: StructType,
      index: => FileIndex,
      table: TableFolder): Seq[(String, InternalRow)] =
    if (schema.isEmpty) Nil
    else index.listFiles(Nil, Nil).flatMap { partition =>
      val folders = partition.files.map(_.fileStatus.getPath.getParent).distinct
      folders.map(table.relativize(_) -> partition.values)
    }

  /** A reference to the file, as used in the journal. */
  def refOf(table: TableFolder, file: FileStatus): FileRef =
    FileRef(table.relativize(file.getPath), file.getLen, file.getModificationTime)

  private def conjuncts(condition: Expression): Seq[Expression] = condition match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }
}
