package io.pyzorder.api

import java.util.{List => JList}

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ArrayNode
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}

import io.pyzorder.advisor.{Advisor, WorkloadFilter}
import io.pyzorder.commands.TableFunctions
import io.pyzorder.commands.optimize.OptimizePlanner
import io.pyzorder.index.model.IndexedColumn

/** What pyzorder.advisor calls: plain types in, JSON out. */
final class AdvisorApi(session: shim.SparkSession, target: String) {

  private val mapper = new ObjectMapper()
  private val advisor = new Advisor(session, TableFunctions.tableOf(session, target))
  private val known = mutable.HashMap.empty[String, WorkloadFilter]
  private var asked = Vector.empty[WorkloadFilter]

  /** An object: `name` (its parts; none for a path), `root`, `columns`, `indexed`. */
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
   * What a name in a query means, temporary views first: an object with `columns` and, of a view
   * (`isView`), whether it `isTemporary`, its `text` (null: a DataFrame's) and the `namespace` that
   * names in it are of; an empty one where there is no such relation.
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
   * Adds a predicate to the reading that `read` will end; an object: `columns` (names of the
   * columns whose statistics it asks for), `reason` (null, or why it skips nothing).
   */
  def predicate(sql: String): String = add(sql, advisor.predicate(sql))

  /** The same of a join; see WorkloadFilters.ofJoin. */
  def join(sql: String, column: String, other: shim.DataFrame, isBroadcast: Boolean): String =
    add(s"$sql $column $isBroadcast", advisor.join(sql, column, other, isBroadcast))

  /** Ends a reading, of the predicates and joins added since the last one. */
  def read(): Unit = {
    advisor.read(asked.map(_.filter))
    asked = Vector.empty
  }

  /** The files as they are; an object: `files`, `bytes`, `rows`, `newFiles` of an OPTIMIZE,
   *  `clusteredBy` (see AdvisedFiles), and `verdict`, the sentence on an OPTIMIZE that names
   *  nothing.
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

  /** Names of the columns that the readings ask for: an array. */
  def columns(): String = {
    val names = mapper.createArrayNode()
    put(names, advisor.columns.map(_.name))
    mapper.writeValueAsString(names)
  }

  /** Draws the sample of those, at least one; an object: `drawn` rows, `judged` files. */
  def draw(limit: Long): String = {
    val rows = advisor.draw(limit)
    val item = mapper.createObjectNode()
    item.put("drawn", rows.length)
    item.put("judged", rows.judged)
    mapper.writeValueAsString(item)
  }

  /** Bytes that each reading opens of a layout by some of `columns`: an array. */
  def openedOf(by: JList[String], linear: Boolean): String =
    numbers(advisor.openedOf(by.asScala.toList.map(columnOf), linear))

  /** How many times larger the table is in layouts by some of `columns` each: an array. */
  def growth(layouts: JList[JList[String]]): String =
    numbers(advisor.growth(layouts.asScala.toList.map(_.asScala.toList.map(columnOf))))

  /** Bytes that each reading opens of the files as they are; see AdvisedFiles.present. */
  def openedNow(complete: Boolean): String = numbers(advisor.openedNow(complete))

  /** For each reading an object: for each column that it filters the share of rows it leaves. */
  def selectivity(atMost: Int): String = {
    val list = mapper.createArrayNode()
    advisor.selectivity(atMost).foreach { shares =>
      val item = list.addObject()
      shares.foreach { case (column, share) => item.put(column.name, share) }
    }
    mapper.writeValueAsString(list)
  }

  private def columnOf(name: String): IndexedColumn =
    advisor.columns.find(_.name == name).getOrElse(
      throw new NoSuchElementException(s"no reading asks for a column $name"))

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

  private def numbers(values: Seq[Any]): String = values.mkString("[", ",", "]")
}
