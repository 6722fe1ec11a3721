package io.pyzorder.index.model

import scala.util.Try

import org.apache.spark.sql.types.BinaryType

import io.pyzorder.common.ColumnNames

/**
 * An indexed column that describes the z-values of rows. OPTIMIZE adds such a column if it lays out
 * files by the direct method. The index table contains the minimum and maximum z-value of each
 * file. The column is named after the expression that computes it, such as `zorder_value(a, b.c)`.
 * It is not a column of the data files, and no query references it.
 */
object ZValueColumn {

  private val Name = "zorder_value\\((.*)\\)".r

  /** @param clusteredBy the paths of the clustering columns, in order */
  def apply(clusteredBy: Seq[Seq[String]]): IndexedColumn =
    IndexedColumn(
      Seq(clusteredBy.map(IndexedColumn.nameOf).mkString("zorder_value(", ", ", ")")), BinaryType)

  /** The paths of the clustering columns; None if this is not a column of z-values. */
  def unapply(column: IndexedColumn): Option[Seq[Seq[String]]] = column match {
    case IndexedColumn(Seq(Name(names)), BinaryType) =>
      Try(ColumnNames.parse(names)).toOption
    case _ => None
  }
}
