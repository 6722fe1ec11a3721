package io.pyzorder.catalog

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructField, StructType}

import io.pyzorder.common.{ColumnNames, ZOrderErrors, ZOrderException}
import io.pyzorder.expressions.OrderedBytes
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{DeniedColumns, IndexedColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.TableFolder

/**
 * Resolves and validates the clustering columns that a ZORDER BY clause or the table itself names.
 */
object ClusteringColumns {

  /** A z-value has 63 bits, and each column needs at least one of them. */
  private val MaxColumns = 63

  private val Property = "zorder.clusterBy"

  /**
   * Resolves `names` to column paths, spelled as in the table's schema. Throws if there are too
   * many names, or if a column is unknown, ambiguous, named twice or a partition column, or has a
   * type without an order.
   *
   * @param table      the table's name, used in messages
   * @param files      the columns that the table's files contain
   * @param partitions the table's partition columns
   */
  def resolve(
      table: String,
      files: StructType,
      partitions: StructType,
      names: Seq[Seq[String]],
      conf: SQLConf): Seq[Seq[String]] = {
    if (names.length > MaxColumns) throw ZOrderErrors.tooManyColumns(names.length, MaxColumns)
    val paths = names.map(name => resolveOne(table, files, partitions, name, conf))
    paths.zipWithIndex.foreach { case (path, i) =>
      if (paths.indexOf(path) < i) throw ZOrderErrors.duplicateColumn(IndexedColumn.nameOf(path))
    }
    paths
  }

  /**
   * The clustering columns for an OPTIMIZE without ZORDER BY; Nil if it should only compact files.
   */
  def default(session: shim.SparkSession, table: ResolvedTable): Seq[Seq[String]] = {
    val named = declared(table.properties, table.schema.fieldNames.toSeq)
    if (named.isEmpty) remembered(session, table)
    else {
      val columns = resolve(table.name, table.fileSchema, table.partitionSchema, named,
        session.sessionState.conf)
      DeniedColumns.of(session.sessionState.conf, table.properties).check(columns)
      columns
    }
  }

  /**
   * The columns declared by `zorder.clusterBy`, or else by Spark's CLUSTER BY; Nil if there are
   * none, or if `isAuto`.
   *
   * @param columns the names of the table's columns
   */
  def declared(properties: Map[String, String], columns: Seq[String]): Seq[Seq[String]] =
    if (isAuto(properties, columns)) Nil
    else properties.get(Property).map(fromText)
      .orElse(properties.get("clusteringColumns").map(fromJson))
      .getOrElse(Nil)

  /** Whether the table declares that the recorded workload chooses its clustering columns. */
  def isAuto(properties: Map[String, String], columns: Seq[String]): Boolean =
    properties.get(Property).exists(text => isAuto(text.trim, columns))

  /**
   * Whether a word in place of a list of columns means that the recorded workload chooses them. If
   * the table has a column called `auto`, the word is its name.
   */
  def isAuto(word: String, columns: Seq[String]): Boolean =
    word.equalsIgnoreCase("auto") && !columns.exists(_.equalsIgnoreCase("auto"))

  /**
   * The clustering columns of the last OPTIMIZE recorded in the journal or, if that list is
   * unusable, the most frequent clustering columns in the index. A list is unusable if the table no
   * longer has one of the listed columns, or if one of them is now excluded from indexes. Nil if
   * both lists are unusable.
   */
  def remembered(session: shim.SparkSession, table: ResolvedTable): Seq[Seq[String]] = {
    val conf = session.sessionState.conf
    val hadoopConf = session.sessionState.newHadoopConf()
    val folder = new TableFolder(table.root)
    def usable(names: Seq[Seq[String]]): Seq[Seq[String]] =
      try {
        val columns = resolve(table.name, table.fileSchema, table.partitionSchema, names, conf)
        DeniedColumns.of(conf, table.properties).check(columns)
        columns
      } catch { case _: ZOrderException => Nil }
    val recorded = usable(LayoutRecord.last(hadoopConf, folder).toSeq.flatMap(_.columns))
    if (recorded.nonEmpty) recorded
    else usable(IndexStore.latest(hadoopConf, folder).toSeq
        .flatMap(IndexStore.loadAll(session, _)(mostUsed)).flatten)
  }

  private def mostUsed(index: IndexSnapshot): Seq[Seq[String]] =
    index.entries.map(_.clusteredBy).filter(_.nonEmpty).groupBy(identity)
      .toSeq.sortBy(-_._2.length).headOption.toSeq
      .flatMap { case (names, _) => names.flatMap(name => index.columns.find(_.name == name)) }
      .map(_.path)

  private def fromText(text: String): Seq[Seq[String]] =
    try ColumnNames.parse(text)
    catch {
      case _: ZOrderException =>
        throw ZOrderErrors.invalidSetting(Property, text,
          "It must list columns as in ZORDER BY, such as 'a, b.c'. To declare none, unset it.")
    }

  /**
   * Parses Spark's representation of CLUSTER BY, such as [["a"],["b","c"]]. It contains a list of
   * name parts for each column.
   */
  private def fromJson(json: String): Seq[Seq[String]] =
    try new ObjectMapper().readValue(json, classOf[Array[Array[String]]]).toSeq.map(_.toSeq)
    catch {
      case NonFatal(failure) =>
        throw ZOrderErrors.invalidSetting("clusteringColumns", json, failure.getMessage)
    }

  private def resolveOne(
      table: String,
      files: StructType,
      partitions: StructType,
      name: Seq[String],
      conf: SQLConf): Seq[String] = {
    val asked = IndexedColumn.nameOf(name)
    if (field(partitions, name.head, asked, table, conf).isDefined) {
      throw ZOrderErrors.partitionColumn(name.head)
    }
    var fields: DataType = files
    val path = name.map { part =>
      val found = fields match {
        case struct: StructType => field(struct, part, asked, table, conf)
        case array: ArrayType => throw ZOrderErrors.unsupportedType(asked, array)
        case map: MapType => throw ZOrderErrors.unsupportedType(asked, map)
        case _ => None
      }
      val column = found.getOrElse(
        throw ZOrderErrors.unknownColumn(asked, table, files.fieldNames.toSeq))
      fields = column.dataType
      column.name
    }
    if (!OrderedBytes.supports(fields)) throw ZOrderErrors.unsupportedType(asked, fields)
    path
  }

  private def field(
      struct: StructType,
      part: String,
      asked: String,
      table: String,
      conf: SQLConf): Option[StructField] = {
    val candidates = struct.fields.filter(f => conf.resolver(f.name, part))
    if (candidates.length > 1) {
      throw ZOrderErrors.ambiguousColumn(asked, table, candidates.map(_.name).toSeq)
    }
    candidates.headOption
  }
}
