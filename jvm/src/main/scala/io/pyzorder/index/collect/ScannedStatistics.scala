package io.pyzorder.index.collect

import java.util.Locale

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  Alias, Expression, GetStructField, NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.{FileFormat, HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.{shim, SessionAccess}
import org.apache.spark.sql.types._

import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.index.model.{ColumnStatistics, DataFiles, IndexedColumn, IndexedColumns}
import io.pyzorder.index.model.ReadSettings
import io.pyzorder.index.sketch.ColumnSketch
import io.pyzorder.storage.ExactFileIndex

/** Collects statistics in one Spark job, which reads the values themselves, as a query does. */
private[index] object ScannedStatistics {

  /**
   * The maximum for spark.sql.files.openCostInBytes. A task then reads at most about 500 files.
   */
  private val MostOpenCost = 256L << 10

  /**
   * What a scan has found in a file.
   *
   * @param statistics the columns' statistics, keyed by IndexedColumn.name
   * @param sketches   each column's sketch, except for columns with too many distinct values
   */
  final case class Scanned(
      numRecords: Long,
      statistics: Map[String, ColumnStatistics],
      sketches: Map[String, ColumnSketch])

  /**
   * Scans columns of files.
   *
   * @param wanted the columns to scan in each file, keyed by the file's position in `data.files`;
   *               files without columns to scan are not read
   * @param sketched the columns for which sketches are collected
   * @param expressions how to compute the columns that are expressions
   * @return the statistics, keyed by the file's position; files without rows are left out
   */
  def of(
      session: shim.SparkSession,
      data: DataFiles,
      wanted: Map[Int, Seq[IndexedColumn]],
      sketched: SketchedColumns,
      expressions: Seq[ResolvedExpression] = Nil): Map[Int, Scanned] = {
    val groups = wanted.toSeq.filter(_._2.nonEmpty).groupBy(_._2)
      .map { case (columns, files) => (columns, files.map(_._1)) }.toSeq
    if (groups.isEmpty) {
      Map.empty
    } else {
      SQLExecution.withSQLConfPropagated(session) {
        val parts = groups.map { case (columns, files) =>
          val computed = expressions.filter(e => columns.contains(e.column))
          scan(session, data, columns.diff(computed.map(_.column)), computed, files, sketched)
        }
        val collected =
          JobDescription.step(session.sparkContext, "collect statistics from the rows")(
            session.sparkContext.union(parts).collect())
        merged(collected.toSeq, groups.flatMap(_._1))
      }
    }
  }

  /**
   * Scans the files as a relation whose only partition column contains each file's position. The
   * indexed columns, which may be struct fields, are projected to top-level columns. They are
   * followed by the columns from which the expressions are computed. CHAR values in nested types
   * are read as they are stored, because not every reader of the files pads them.
   */
  private def scan(
      session: shim.SparkSession,
      data: DataFiles,
      plain: Seq[IndexedColumn],
      expressions: Seq[ResolvedExpression],
      files: Seq[Int],
      sketched: SketchedColumns): RDD[(Int, Scanned)] = {
    val number = StructField(unusedName(data.dataSchema), IntegerType, nullable = false)
    val location = new ExactFileIndex(
      data.root,
      StructType(Array(number)),
      files.map(i => (InternalRow(i), Seq(statusOf(data, i)))))
    val relation = LogicalRelation(HadoopFsRelation(
        location,
        StructType(Array(number)),
        StructType(data.dataSchema.map(IndexedColumns.asStored)),
        None,
        formatOf(data.format),
        scanOptions(session, data.options))(packing(session)))
    val attributes = relation.output
    val flat = plain.zipWithIndex.map { case (column, i) =>
      Alias(valueOf(attributes, column.path), s"c$i")()
    }
    val inputs =
      attributes.filter(a => expressions.exists(_.value.references.exists(_.name == a.name)))
        .zipWithIndex.map { case (a, i) => a.name -> Alias(a, s"i$i")() }
    val plan = Project(
      (flat :+ attributes.find(_.name == number.name).get) ++ inputs.map(_._2), relation)
    val bound = expressions.map(_.bound(inputs.toMap, plan.output))
    val columns = plain ++ expressions.map(_.column)
    val names = columns.map(_.name)
    val fileAt = plain.length
    val tracked = columns.zipWithIndex.map { case (c, i) => IndexedColumn(Seq(s"c$i"), c.dataType) }
    val elements = expressions.indices.filter(expressions(_).ofElements).map(_ + fileAt).toSet
    val hashed = sketched.copy(
      names = tracked.zip(names).collect { case (c, name) if sketched.names(name) => c.name }.toSet)
    val schema = StructType(
      (plan.output.map(a => StructField(a.name, a.dataType)) ++
        tracked.drop(fileAt).zip(expressions)
          .map { case (c, e) => StructField(c.path.head, e.value.dataType) }).toArray)
    val sizes =
      if (hashed.names.isEmpty) Map.empty[Int, Long]
      else files.map(i => i -> data.files(i).size).toMap
    shim.dataFrame(session, plan).queryExecution.toRdd.mapPartitions(TaskFunction {
      (rows: Iterator[InternalRow]) =>
        val files = mutable.HashMap.empty[Int, (StatisticsTracker, ExpressionValues)]
        var last = -1
        var tracker: StatisticsTracker = null
        var values: ExpressionValues = null
        rows.foreach { row =>
          val file = row.getInt(fileAt)
          if (file != last) {
            val (seen, computed) = files.getOrElseUpdate(file,
              (new StatisticsTracker(tracked, schema, sketched = hashed, ofElements = elements),
                new ExpressionValues(bound)))
            tracker = seen
            values = computed
            last = file
          }
          tracker.update(values.after(row))
        }
        files.iterator.map { case (file, (seen, values)) =>
          val failed = tracked.drop(fileAt).zipWithIndex
            .collect { case (c, i) if values.hasFailed(i) => c.name }.toSet
          val (result, hashes) = (seen.result, seen.sketches(sizes.get(file)) -- failed)
          def statistics(name: String): ColumnStatistics =
            if (failed(name)) ColumnStatistics.failed else result(name)
          (file,
            Scanned(
              seen.numRecords,
              names.zip(tracked).map { case (name, c) => name -> statistics(c.name) }.toMap,
              names.zip(tracked).flatMap { case (name, c) => hashes.get(c.name).map(name -> _) }
                .toMap))
        }
    })
  }

  /**
   * A copy of the session in which a task reads many small files. With Spark's default of 4 MiB, a
   * task reads at most 32 files, and starting the tasks takes longer than reading very small files.
   */
  private def packing(session: shim.SparkSession): shim.SparkSession = {
    val copy = SessionAccess.cloned(session)
    val conf = copy.sessionState.conf
    conf.setConf(
      SQLConf.FILES_OPEN_COST_IN_BYTES, math.min(conf.filesOpenCostInBytes, MostOpenCost))
    copy
  }

  /**
   * Spark's own file format, not pyzorder's wrapper. It either reads exactly the given files or
   * fails.
   */
  private def formatOf(format: String): FileFormat =
    if (format == "orc") new OrcFileFormat else new ParquetFileFormat

  /**
   * The options of the scan. A missing or corrupt file must cause an error; otherwise, its rows
   * would be missing from the statistics. Under the rebase mode EXCEPTION, dates and timestamps are
   * read as stored, and Collector then discards bounds for which `Calendars.isModern` is false.
   */
  private def scanOptions(
      session: shim.SparkSession,
      options: Map[String, String]): Map[String, String] = {
    val replaced = Set(
      "ignorecorruptfiles", "ignoremissingfiles", "datetimerebasemode", "int96rebasemode")
    def corrected(mode: String): String = if (mode == "EXCEPTION") "CORRECTED" else mode
    options.filterNot { case (key, _) => replaced(key.toLowerCase(Locale.ROOT)) } ++ Map(
      "ignoreCorruptFiles" -> "false",
      "ignoreMissingFiles" -> "false",
      "datetimeRebaseMode" -> corrected(ReadSettings.datetimeRebase(session, options)),
      "int96RebaseMode" -> corrected(ReadSettings.int96Rebase(session, options)))
  }

  private def statusOf(data: DataFiles, i: Int): FileStatus = {
    val file = data.files(i)
    val path: Path = data.locate(file)
    ExactFileIndex.status(path, file.size, file.modificationTime)
  }

  private def valueOf(attributes: Seq[NamedExpression], path: Seq[String]): Expression = {
    val top: Expression = attributes.find(_.name == path.head).get
    path.tail.foldLeft(top) { (struct, name) =>
      val ordinal = struct.dataType.asInstanceOf[StructType].fieldIndex(name)
      GetStructField(struct, ordinal, Some(name))
    }
  }

  private def unusedName(schema: StructType): String = {
    val taken = schema.fieldNames.map(_.toLowerCase(Locale.ROOT)).toSet
    Iterator.from(0).map(i => s"_zorder_file_$i").find(name => !taken(name)).get
  }

  /** Merges the statistics of each file, which may have been read in several splits. */
  private def merged(parts: Seq[(Int, Scanned)], columns: Seq[IndexedColumn]): Map[Int, Scanned] = {
    val types = columns.map(c => c.name -> c.dataType).toMap
    def merge(a: Scanned, b: Scanned): Scanned = Scanned(
      a.numRecords + b.numRecords,
      a.statistics.map { case (name, known) =>
        name -> ColumnStatistics.merge(known, b.statistics(name), types(name))
      },
      for {
        (name, sketch) <- a.sketches
        both <- b.sketches.get(name).flatMap(sketch.union)
      } yield name -> both)
    parts.groupBy(_._1).map { case (file, pieces) => file -> pieces.map(_._2).reduce(merge _) }
  }
}
