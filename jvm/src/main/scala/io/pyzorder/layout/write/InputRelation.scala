package io.pyzorder.layout.write

import java.util.Locale

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._

import io.pyzorder.index.collect.ClusteringValue
import io.pyzorder.index.model.{IndexedColumn, IndexedColumns}
import io.pyzorder.storage.ExactFileIndex

/**
 * The rows of data files, together with the number of each row's table partition. Values are read
 * as they are stored, so CHAR values are not padded.
 *
 * @param dataSchema the columns of the files
 * @param groups     the files of each table partition
 */
final class InputRelation(
    session: shim.SparkSession,
    root: Path,
    format: FileFormat,
    dataSchema: StructType,
    options: Map[String, String],
    groups: Seq[Seq[FileStatus]]) {
  import InputRelation._

  private val schema = asStored(dataSchema)

  private val numbers =
    new StructType().add(freeName(schema), IntegerType, nullable = false)

  private val relation: LogicalPlan = LogicalRelation(HadoopFsRelation(
      new ExactFileIndex(root, numbers,
        groups.zipWithIndex.map { case (files, number) =>
          (InternalRow(number), files)
        }),
      numbers,
      schema,
      bucketSpec = None,
      format,
      options -- choosing(options) -- forgiving(options))(session))

  /** The columns of the files, in the table's order. */
  val data: Seq[Attribute] = relation.output.take(schema.length)

  /** The number of the row's table partition, in the output of `only`. */
  val number: Attribute = relation.output.last

  /** The number of the row's table partition, in the output of `all`. */
  val partition: Expression = if (groups.length == 1) Literal(0) else number

  /** The value of a clustering column; see ClusteringValue. */
  def value(column: IndexedColumn): Expression =
    ClusteringValue.of(session, schema, column, name => data(schema.fieldIndex(name)))

  /** The physical plan that reads all columns and, if there are several partitions, `number`. */
  def all: SparkPlan =
    planned(Project(if (groups.length == 1) data else data :+ number, relation))

  /** The physical plan that reads only the table's columns that these need, and `number`. */
  def only(columns: Seq[IndexedColumn]): SparkPlan = {
    val names = columns.flatMap(_.inputs).distinct
    planned(Project(names.map(name => data(schema.fieldIndex(name))) :+ number, relation))
  }

  private def planned(plan: LogicalPlan): SparkPlan =
    shim.dataFrame(session, plan).queryExecution.executedPlan
}

object InputRelation {

  /** The options that restrict a table to some of the files in its folder. */
  def choosing(options: Map[String, String]): Seq[String] =
    among(options, "modifiedafter", "modifiedbefore", "pathglobfilter")

  /**
   * The options that determine how files are found, or that tolerate missing and corrupt files.
   * They must not apply here, because the files to read are already chosen, and the rewrite must
   * fail if a file cannot be read.
   */
  private def forgiving(options: Map[String, String]): Seq[String] =
    among(options, "ignorecorruptfiles", "ignoremissingfiles", "path", "paths",
      "recursivefilelookup")

  private def among(options: Map[String, String], names: String*): Seq[String] =
    options.keys.filter(key => names.contains(key.toLowerCase(Locale.ROOT))).toSeq

  /** The schema with all columns nullable. CHAR values are not padded. */
  private[layout] def asStored(schema: StructType): StructType =
    StructType(schema.map(field => IndexedColumns.asStored(field).copy(nullable = true)))

  private def freeName(schema: StructType): String =
    Iterator.iterate("_zorder_partition")(_ + "_")
      .find(name => !schema.fieldNames.exists(_.equalsIgnoreCase(name))).get
}
