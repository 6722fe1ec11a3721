package io.pyzorder.index.model

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.{ZOrderConf, ZOrderErrors}

/**
 * The columns whose values must not appear anywhere in an index, including in its bounds and
 * z-values. Denying a struct denies its fields. Names are compared without regard to case, even if
 * the session is case-sensitive. Denying too many columns only causes extra file reads, whereas
 * denying too few leaks values.
 */
final class DeniedColumns private (paths: Seq[Seq[String]]) {

  def isEmpty: Boolean = paths.isEmpty

  /** Whether the column is denied. Nothing about a denied column may be recorded. */
  def apply(column: IndexedColumn): Boolean = column match {
    case ExpressionColumn(expression) => readIn(expression.inputs)
    case _ => ZValueColumn.unapply(column).getOrElse(Seq(column.path)).exists(denies)
  }

  /**
   * Whether an expression over these columns of the table may read a denied column. An expression
   * on a struct may read any of the struct's fields.
   */
  def readIn(columns: Iterable[String]): Boolean =
    paths.exists(denied => columns.exists(_.equalsIgnoreCase(denied.head)))

  /** Throws if one of these columns is denied. */
  def checkColumns(columns: Seq[IndexedColumn]): Unit =
    columns.find(apply).foreach(column => throw ZOrderErrors.deniedColumn(column.label))

  /** Whether the column with this path, or a struct that contains it, is denied. */
  private def denies(path: Seq[String]): Boolean =
    paths.exists { denied =>
      denied.length <= path.length &&
      denied.zip(path).forall { case (a, b) => a.equalsIgnoreCase(b) }
    }
}

object DeniedColumns {

  /** The columns on the deny list of the session or of the table. Neither replaces the other. */
  def of(conf: SQLConf, properties: Map[String, String]): DeniedColumns = {
    val setting = ZOrderConf.indexDenyColumns
    new DeniedColumns(setting.get(conf) ++ setting.ofTable(properties).getOrElse(Nil))
  }
}
