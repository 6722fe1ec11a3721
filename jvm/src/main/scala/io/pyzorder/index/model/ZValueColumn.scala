package io.pyzorder.index.model

import scala.util.Try

import org.apache.spark.sql.types.BinaryType

import io.pyzorder.common.ColumnNames

/**
 * The column of the index table that keeps, of files that are laid out by the direct method, the
 * least and the greatest z-value of their rows: `zorder_value(a, b.c)`, as the SQL function gives
 * it. It is no column of the data files, and no query names it.
 */
object ZValueColumn {

  private val Name = "zorder_value\\((.*)\\)".r

  /** @param clusteredBy paths of the clustering columns, in order */
  def apply(clusteredBy: Seq[Seq[String]]): IndexedColumn =
    IndexedColumn(
      Seq(clusteredBy.map(IndexedColumn.nameOf).mkString("zorder_value(", ", ", ")")), BinaryType)

  /** The paths of the clustering columns; None: some column of the data files. */
  def unapply(column: IndexedColumn): Option[Seq[Seq[String]]] = column match {
    case IndexedColumn(Seq(Name(names)), BinaryType) =>
      Try(ColumnNames.parse(names)).toOption
    case _ => None
  }
}
