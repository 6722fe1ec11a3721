package io.pyzorder.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable}
import io.pyzorder.commands.{TableFunctions, TableLayout}
import io.pyzorder.commands.optimize.{ChosenLayout, OptimizePlanner}
import io.pyzorder.common.ColumnNames
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.skipping.predicate.{PredicateBox, PredicateRules}
import io.pyzorder.storage.TableFolder

/**
 * Provides the data for plots and reports about a table. The parameter `target` has the same syntax
 * as the argument of skipping_index('…').
 *
 * JSON values follow Spark's internal representation: dates are numbers of days, timestamps are
 * numbers of microseconds, intervals are numbers of months or microseconds, and TIME values are
 * numbers of nanoseconds. Decimals, NaN and infinities are strings, and binary values are strings
 * of hexadecimal digits.
 */
object LayoutApi {

  private val mapper = new ObjectMapper()

  /**
   * Describes the files of a table, as a JSON object with `table`, `target` (the table as written
   * in statements), `index` (whether the table has a usable index), `root`, `format`, `zone`,
   * `columns` (each with `name` and `type`) and `files`. Each file has `path`, `size`, `indexed`,
   * `rows` (null if unknown), `clusteredBy`, and two arrays with one item per column: `bounds`
   * (null if absent or unknown) and `empty` (whether all values are null or NaN).
   *
   * @param names see TableLayout.of
   */
  def layout(session: shim.SparkSession, target: String, names: JList[String]): String = {
    val table = TableFunctions.tableOf(session, target)
    val folder = new TableFolder(table.root)
    val layout = TableLayout.of(session, table, names.asScala.toList)
    val node = mapper.createObjectNode()
    node.put("table", nameOf(table)).put("target", table.sql).put("index", layout.isIndexed)
    node.put("root", table.root.toString).put("format", table.provider)
    node.put("zone", session.sessionState.conf.sessionLocalTimeZone)
    layout.columns.foreach { column =>
      node.withArray("columns").addObject()
        .put("name", column.label).put("type", column.dataType.sql)
    }
    val files = node.putArray("files")
    layout.files.foreach { laidOut =>
      val item = files.addObject()
      item.put("path", folder.resolve(laidOut.file.path).toString)
      item.put("size", laidOut.file.size).put("indexed", laidOut.indexed)
      item.put("rows", laidOut.entry.map(e => Long.box(e.numRecords)).orNull)
      val clusteredBy = item.putArray("clusteredBy")
      laidOut.entry.foreach(_.clusteredBy.foreach(clusteredBy.add))
      putBounds(item.putArray("bounds"), layout.columns.map(laidOut.statistics(_).bounds))
      val empty = item.putArray("empty")
      layout.columns.foreach(column => empty.add(laidOut.statistics(column).empty))
    }
    mapper.writeValueAsString(node)
  }

  /**
   * Predicts whether an OPTIMIZE would pay off. Returns an object with `kind` and `sentence`.
   *
   * @param columns the clustering columns, written as in ZORDER BY; empty for an OPTIMIZE without
   *                ZORDER BY
   */
  def verdict(
      session: shim.SparkSession,
      target: String,
      columns: JList[String]): String = {
    val table = TableFunctions.tableOf(session, target)
    val verdict =
      if (columns.isEmpty) OptimizePlanner.verdict(session, table)
      else {
        val named = columns.asScala.toSeq.flatMap(ColumnNames.parseItems)
        val layout = ChosenLayout(ClusteringColumns.resolve(session, table, named))
        OptimizePlanner.outlook(session, table, layout).verdict
      }
    val node = mapper.createObjectNode()
    node.put("kind", verdict.kind).put("sentence", verdict.sentence)
    mapper.writeValueAsString(node)
  }

  /** The table as a DataFrame. The caller queries it to report which files are skipped. */
  def rows(session: shim.SparkSession, target: String): shim.DataFrame = {
    val table = TableFunctions.tableOf(session, target)
    table.identifier match {
      case Some(name) => session.table(name.copy(catalog = None).quotedString)
      case None => session.baseRelationToDataFrame(table.relation)
    }
  }

  /**
   * The box to which a query's filters restrict its table or, for a join, the leftmost table.
   * Returns a JSON array with one pair per column. The pair consists of the lower and the upper
   * limit, each of which is null if the box is unbounded on that side.
   *
   * @param names column names, spelled as `layout` returns them
   */
  def box(execution: QueryExecution, names: JList[String]): String = {
    val filter = PredicateRules(conditions(execution.optimizedPlan)).mayBeTrue
    val node = mapper.createArrayNode()
    names.asScala.foreach { name =>
      val side = PredicateBox.of(filter, c => IndexedColumn.nameOf(c.path) == name)
      val limits = node.addArray()
      put(limits, side.least)
      put(limits, side.greatest)
    }
    mapper.writeValueAsString(node)
  }

  private def nameOf(table: ResolvedTable): String =
    table.identifier.fold(table.root.getName)(_.copy(catalog = None).unquotedString)

  private def conditions(plan: LogicalPlan): Seq[Expression] = plan match {
    case Filter(condition, child) => condition +: conditions(child)
    case Project(_, child) => conditions(child)
    case join: Join => conditions(join.left) // IN (SELECT …) and EXISTS become joins
    case _ => Nil
  }

  private def putBounds(into: ArrayNode, bounds: Seq[Option[(Any, Any)]]): Unit = bounds.foreach {
    case Some((least, greatest)) =>
      val pair = into.addArray()
      put(pair, Some(least))
      put(pair, Some(greatest))
    case None => into.addNull()
  }

  private def put(into: ArrayNode, value: Option[Any]): Unit = value match {
    case None => into.addNull()
    case Some(flag: Boolean) => into.add(flag)
    case Some(number: Byte) => into.add(number.toInt)
    case Some(number: Short) => into.add(number.toInt)
    case Some(number: Int) => into.add(number)
    case Some(number: Long) => into.add(number)
    case Some(number: Float) => putDouble(into, java.lang.Double.parseDouble(number.toString))
    case Some(number: Double) => putDouble(into, number)
    case Some(number: Decimal) => into.add(number.toJavaBigDecimal.toPlainString)
    case Some(text: UTF8String) => into.add(text.toString)
    case Some(bytes: Array[Byte]) => into.add(bytes.map("%02x".format(_)).mkString)
    case Some(other) =>
      throw new IllegalStateException(s"${other.getClass.getName} cannot be converted to JSON")
  }

  private def putDouble(into: ArrayNode, number: Double): Unit =
    if (number.isNaN || number.isInfinite) into.add(number.toString) else into.add(number)
}
