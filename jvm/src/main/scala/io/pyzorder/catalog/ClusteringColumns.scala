package io.pyzorder.catalog

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{ArrayType, DataType, MapType, StructField, StructType}

import io.pyzorder.common.{ColumnNames, ZOrderErrors, ZOrderException}
import io.pyzorder.expressions.OrderedBytes
import io.pyzorder.index.collect.ResolvedExpression
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{DeniedColumns, ExpressionColumn, IndexedColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.TableFolder

/**
 * Resolves and validates the clustering columns that a ZORDER BY clause or the table itself names.
 * Each is named by its path (Right) or, if it is an expression, by the expression's text (Left).
 */
object ClusteringColumns {

  /** A z-value has 63 bits, and each column needs at least one of them. */
  private val MaxColumns = 63

  private val Property = "zorder.clusterBy"

  /**
   * Resolves names to columns, spelled as in the table's schema. Throws if there are too many
   * names, if a column is unknown, ambiguous, named twice or a partition column, if an expression
   * cannot be indexed, or if a type has no order.
   *
   * @param table      the table's name, used in messages
   * @param files      the columns that the table's files contain
   * @param partitions the table's partition columns
   * @param indexed    the columns of the table's index. An expression that computes the same as one
   *                   of them is resolved to that column, even if its text differs
   */
  def resolve(
      session: shim.SparkSession,
      table: String,
      files: StructType,
      partitions: StructType,
      names: Seq[Either[String, Seq[String]]],
      indexed: Seq[IndexedColumn]): Seq[IndexedColumn] = {
    if (names.length > MaxColumns) throw ZOrderErrors.tooManyColumns(names.length, MaxColumns)
    val conf = session.sessionState.conf
    val columns = names.map {
      case Right(path) => resolveOne(table, files, partitions, path, conf)
      case Left(text) =>
        val resolved = ResolvedExpression.of(session, files, text, table)
        if (!OrderedBytes.supports(resolved.value.dataType)) {
          throw ZOrderErrors.unsupportedType(text, resolved.value.dataType)
        }
        val found = resolved.column
        indexed.find(isSame(_, found)).getOrElse(found)
    }
    columns.zipWithIndex.foreach { case (column, i) =>
      if (columns.indexWhere(c => c == column || isSame(c, column)) < i) {
        throw ZOrderErrors.duplicateColumn(column.label)
      }
    }
    columns
  }

  /**
   * Resolves names to columns of a table that may be recorded in an index. Also throws if a column
   * is denied.
   */
  def resolve(
      session: shim.SparkSession,
      table: ResolvedTable,
      names: Seq[Either[String, Seq[String]]]): Seq[IndexedColumn] = {
    lazy val index =
      IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(table.root))
    val columns = resolve(session, table.name, table.fileSchema, table.partitionSchema, names,
      if (names.exists(_.isLeft)) index.toSeq.flatMap(_.columns) else Nil)
    DeniedColumns.of(session.sessionState.conf, table.properties).checkColumns(columns)
    columns
  }

  /** Whether both columns contain the values of expressions that compute the same. */
  private def isSame(a: IndexedColumn, b: IndexedColumn): Boolean = (a, b) match {
    case (ExpressionColumn(one), ExpressionColumn(other)) =>
      one.form == other.form && one.settings == other.settings
    case _ => false
  }

  /**
   * The clustering columns for an OPTIMIZE without ZORDER BY; Nil if it should only compact files.
   */
  def default(session: shim.SparkSession, table: ResolvedTable): Seq[IndexedColumn] = {
    val named = declared(table.properties, table.schema.fieldNames.toSeq)
    if (named.isEmpty) remembered(session, table) else resolve(session, table, named)
  }

  /**
   * The columns declared by `zorder.clusterBy`, or else by Spark's CLUSTER BY; Nil if there are
   * none, or if `isAuto`.
   *
   * @param columns the names of the table's columns
   */
  def declared(
      properties: Map[String, String],
      columns: Seq[String]): Seq[Either[String, Seq[String]]] =
    if (isAuto(properties, columns)) Nil
    else properties.get(Property).map(fromText)
      .orElse(properties.get("clusteringColumns").map(fromJson(_).map(Right(_))))
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
  def remembered(session: shim.SparkSession, table: ResolvedTable): Seq[IndexedColumn] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val folder = new TableFolder(table.root)
    def usable(names: Seq[Either[String, Seq[String]]]): Seq[IndexedColumn] =
      try resolve(session, table, names)
      catch { case NonFatal(_) => Nil } // the texts of expressions may be forged
    val recorded = usable(LayoutRecord.last(hadoopConf, folder).toSeq.flatMap(_.columns))
    if (recorded.nonEmpty) recorded
    else usable(IndexStore.latest(hadoopConf, folder).toSeq
        .flatMap(IndexStore.loadAll(session, _)(mostUsed)).flatten)
  }

  private def mostUsed(index: IndexSnapshot): Seq[Either[String, Seq[String]]] =
    index.entries.map(_.clusteredBy).filter(_.nonEmpty).groupBy(identity)
      .toSeq.sortBy(-_._2.length).headOption.toSeq
      .flatMap { case (labels, _) => labels.flatMap(label => index.columns.find(_.label == label)) }
      .map(named)

  /** Names the column: the inverse of `resolve`. */
  def named(column: IndexedColumn): Either[String, Seq[String]] = column match {
    case ExpressionColumn(expression) => Left(expression.text)
    case _ => Right(column.path)
  }

  private def fromText(text: String): Seq[Either[String, Seq[String]]] =
    try ColumnNames.parseItems(text)
    catch {
      case _: ZOrderException =>
        throw ZOrderErrors.invalidSetting(Property, text,
          "It must list columns as in ZORDER BY, such as 'a, lower(b.c)'. " +
            "To declare none, unset it.")
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
      conf: SQLConf): IndexedColumn = {
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
        throw (
          if (asked.equalsIgnoreCase("auto"))
            ZOrderErrors.autoNotAlone(table, files.fieldNames.toSeq)
          else ZOrderErrors.unknownColumn(asked, table, files.fieldNames.toSeq)))
      fields = column.dataType
      column.name
    }
    if (!OrderedBytes.supports(fields)) throw ZOrderErrors.unsupportedType(asked, fields)
    IndexedColumn(path, fields)
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
