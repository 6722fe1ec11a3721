package io.pyzorder.api

import java.util.{List => JList}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}

import io.pyzorder.advisor.{Advisor, JudgedLayout, LayoutSearch, WorkloadFilter}
import io.pyzorder.commands.TableFunctions
import io.pyzorder.commands.optimize.OptimizePlanner
import io.pyzorder.index.model.IndexedColumn

/** The entry points for the Python package `pyzorder.advisor`. Most methods return JSON. */
final class AdvisorApi(session: shim.SparkSession, target: String) {

  private val mapper = new ObjectMapper()
  private val advisor = new Advisor(session, TableFunctions.tableOf(session, target))
  private val known = mutable.HashMap.empty[String, WorkloadFilter]
  private var asked = Vector.empty[WorkloadFilter]

  /**
   * Describes the table, as an object with `name` (a list of parts, empty for a path), `root`,
   * `columns` and `indexed`.
   */
  def table(): String = {
    val table = advisor.table
    val item = mapper.createObjectNode()
    put(
      item.putArray("name"),
      table.identifier.toSeq.flatMap(named => named.database.toSeq :+ named.table))
    item.put("root", table.root.toString)
    item.put("indexed", advisor.isIndexed)
    put(item.putArray("columns"), table.schema.fieldNames.toIndexedSeq)
    mapper.writeValueAsString(item)
  }

  /**
   * Resolves a name as a query would, so temporary views take precedence. Returns an object with
   * `columns` and, for a view, `isView`, `isTemporary`, `text` (null if a DataFrame defines the
   * view) and `namespace` (in which names in the text are resolved). The object is empty if the
   * name cannot be resolved.
   */
  def relation(parts: JList[String]): String = {
    val item = mapper.createObjectNode()
    val names = parts.asScala.toList
    try {
      val found = shim.dataFrame(session, UnresolvedRelation(names))
      put(item.putArray("columns"), found.schema.fieldNames.toIndexedSeq)
      view(names).foreach { view =>
        item.put("isView", true)
        item.put("isTemporary", session.sessionState.catalog.isTempView(view.identifier))
        item.put("text", view.viewText.orNull)
        put(item.putArray("namespace"), view.viewCatalogAndNamespace)
      }
    } catch { case NonFatal(_) => }
    mapper.writeValueAsString(item)
  }

  private def view(parts: Seq[String]): Option[CatalogTable] = {
    val local = if (parts.headOption.contains(CatalogAccess.sessionCatalog)) parts.tail else parts
    val name = local match {
      case Seq(table) => Some(TableIdentifier(table))
      case Seq(database, table) => Some(TableIdentifier(table, Some(database)))
      case _ => None
    }
    name.map(session.sessionState.catalog.getTempViewOrPermanentTableMetadata)
      .filter(_.tableType == CatalogTableType.VIEW)
  }

  /**
   * Adds a predicate to the scan that the next call to `read` completes. Returns an object with
   * `columns` (the names of the columns whose statistics the predicate's index filter uses) and
   * `reason` (why the predicate cannot be used to skip files; null if it can).
   */
  def predicate(sql: String): String = add(sql, advisor.predicate(sql))

  /** Like `predicate`, but for a join; see WorkloadFilters.ofJoin. */
  def join(sql: String, column: String, other: shim.DataFrame, isBroadcast: Boolean): String =
    add(s"$sql $column $isBroadcast", advisor.join(sql, column, other, isBroadcast))

  /**
   * Completes a scan, which consists of the predicates and joins added since the previous `read`.
   */
  def read(): Unit = {
    advisor.read(asked.map(_.filter))
    asked = Vector.empty
  }

  /**
   * Describes the current files, as an object with `files`, `bytes`, `rows`, `newFiles` (the number
   * of files that an OPTIMIZE would write), `clusteredBy` (see AdvisedFiles) and `verdict` (a
   * sentence that says whether an OPTIMIZE without arguments would pay off).
   */
  def files(): String = {
    val item = mapper.createObjectNode()
    item.put("files", advisor.present.files.length)
    item.put("bytes", advisor.present.files.iterator.map(_.getLen).sum)
    item.put("rows", advisor.present.partitions.iterator.map(_.numRows).sum)
    item.put("newFiles", advisor.present.leaves.sum)
    put(item.putArray("clusteredBy"), advisor.present.clusteredBy)
    item.put("verdict", OptimizePlanner.verdict(session, advisor.table).sentence)
    mapper.writeValueAsString(item)
  }

  /**
   * An array with the names of the columns that the scans filter on. Leaves out columns that
   * OPTIMIZE cannot cluster the table by.
   */
  def columns(): String = {
    val names = mapper.createArrayNode()
    put(names, advisor.columns.map(_.name))
    mapper.writeValueAsString(names)
  }

  /**
   * Samples `columns`, which must not be empty. Returns an object with `drawn` (the number of
   * sampled rows) and `judged` (the number of simulated files).
   */
  def draw(limit: Long): String = {
    val rows = advisor.draw(limit)
    val item = mapper.createObjectNode()
    item.put("drawn", rows.length)
    item.put("judged", rows.judged)
    mapper.writeValueAsString(item)
  }

  /**
   * Evaluates layouts for the scans. Returns an object with `present` and `presentIndexed` (the
   * current files with the current index, and with an index of all files), `candidates` (Z-ordered
   * layouts, best first), `best` (the position in `candidates` of the layout to recommend; null if
   * there is none) and `sorts` (the table sorted by the best layout's columns, best first). A
   * layout is an object with `columns`, `bytesOpened` (by a scan, on average) and `growth` (see
   * JudgedLayout).
   *
   * @param weights how often each scan occurs
   * @param most    see LayoutSearch.candidates
   * @param margin  see LayoutSearch.chosen
   * @param weighs  see LayoutSearch.candidates
   */
  def search(weights: JList[Number], most: Int, margin: Double, weighs: Boolean): String = {
    val counts = weights.asScala.map(_.longValue).toList
    val search = new LayoutSearch(advisor, counts)
    def describe(layout: JudgedLayout, item: ObjectNode): Unit = {
      put(item.putArray("columns"), layout.columns.map(_.name))
      item.put("bytesOpened", layout.mean(counts)).put("growth", layout.growth)
    }
    val found = mapper.createObjectNode()
    describe(search.present(complete = false), found.putObject("present"))
    describe(search.present(complete = true), found.putObject("presentIndexed"))
    val candidates = search.candidates(most, weighs)
    val best = search.chosen(candidates, margin)
    val (listed, sorts) = (found.putArray("candidates"), found.putArray("sorts"))
    candidates.foreach(describe(_, listed.addObject()))
    best.toSeq.flatMap(search.sorts).foreach(describe(_, sorts.addObject()))
    found.put("best", best.map(layout => Int.box(candidates.indexOf(layout))).orNull)
    mapper.writeValueAsString(found)
  }

  /**
   * An array with one object per scan. The object maps each column that the scan filters on to the
   * share of rows that pass the scan's filters on that column.
   */
  def selectivity(atMost: Int): String = {
    val list = mapper.createArrayNode()
    advisor.selectivity(atMost).foreach { shares =>
      val item = list.addObject()
      shares.foreach { case (column, share) => item.put(column.name, share) }
    }
    mapper.writeValueAsString(list)
  }

  private def add(key: String, find: => WorkloadFilter): String = {
    val one = known.getOrElseUpdate(key, find)
    asked :+= one
    val item = mapper.createObjectNode()
    put(
      item.putArray("columns"), one.filter.columns.map(c => IndexedColumn.nameOf(c.path)).distinct)
    item.put("reason", one.reason.orNull)
    mapper.writeValueAsString(item)
  }

  private def put(list: ArrayNode, texts: Seq[String]): Unit = texts.foreach(list.add(_))
}
