package io.pyzorder.index.model

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.{ZOrderConf, ZOrderErrors}

/**
 * The columns of which an index must hold no value: not as bounds, and not in z-values. To deny a
 * struct denies its fields. Names are compared without regard to case, whatever the session says:
 * the one denied by mistake costs a file read, the other a secret.
 */
final class DeniedColumns private (paths: Seq[Seq[String]]) {

  def isEmpty: Boolean = paths.isEmpty

  /** Whether nothing of this column may be recorded. */
  def apply(column: IndexedColumn): Boolean =
    ZValueColumn.unapply(column).getOrElse(Seq(column.path)).exists(denies)

  /** An error if one of these paths is denied. */
  def check(named: Seq[Seq[String]]): Unit =
    named.find(denies).foreach(path => throw ZOrderErrors.deniedColumn(IndexedColumn.nameOf(path)))

  /** Whether the column of this path is denied, or a struct that it is a field of. */
  private def denies(path: Seq[String]): Boolean =
    paths.exists { denied =>
      denied.length <= path.length &&
      denied.zip(path).forall { case (a, b) => a.equalsIgnoreCase(b) }
    }
}

object DeniedColumns {

  /** Those that the session denies, and those that the table does: neither takes back the other. */
  def of(conf: SQLConf, properties: Map[String, String]): DeniedColumns = {
    val setting = ZOrderConf.indexDenyColumns
    new DeniedColumns(setting.get(conf) ++ setting.ofTable(properties).getOrElse(Nil))
  }
}
