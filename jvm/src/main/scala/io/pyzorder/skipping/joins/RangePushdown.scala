package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * The columns whose values include every value of one of a join's keys.
 *
 * @param dataType the type of the key
 */
private[joins] final case class FileKeys(columns: Seq[KeyOrigins.Origin], dataType: DataType)
    extends KeySource[FileKeys] {

  override def fit(ordinal: Int, column: Expression): Boolean =
    FilterColumn.isOrdered(dataType) && dataType == column.dataType

  override def or(ordinal: Int, other: FileKeys, ofOther: Int): FileKeys =
    copy(columns = (columns ++ other.columns).distinct)
}

/**
 * Passes the columns that provide the keys of joins down a plan, so that scans can skip the files
 * whose values lie outside the ranges of these columns. KeyPushdown.prunable says which sides of
 * each type of join may be pruned.
 */
private[joins] abstract class RangePushdown(
    whole: SparkPlan,
    shared: KeyPushdown.Shared[FileKeys])
    extends KeyPushdown[FileKeys](whole, shared) {

  override protected def joined(
      join: BaseJoinExec,
      ofLeft: Seq[JoinedKey[FileKeys]],
      ofRight: Seq[JoinedKey[FileKeys]]): SparkPlan = {
    val (left, right) = KeyPushdown.prunable(join)
    val toLeft =
      if (left && isDeterministic(join)) keysOf(join.right, join.rightKeys, join.leftKeys)
      else Nil
    val toRight =
      if (right && isDeterministic(join)) keysOf(join.left, join.leftKeys, join.rightKeys)
      else Nil
    val pruned = Seq(below(join.left, ofLeft ++ toLeft), below(join.right, ofRight ++ toRight))
    join.withNewChildren(pruned)
  }

  private def keysOf(
      side: SparkPlan,
      keys: Seq[Expression],
      others: Seq[Expression]): Seq[JoinedKey[FileKeys]] =
    for {
      (key, other) <- keys.zip(others)
      columns <- KeyOrigins(side, key)
    } yield JoinedKey(other, 0, FileKeys(columns, key.dataType))

  /** Executing an exchange only once usually saves more than ranges of keys would. */
  override protected def keepsExchanges(index: ZOrderFileIndex): Boolean = index.isShared

  /** Whether the columns can be used to prune a scan of the index. */
  protected def areOfPlan(columns: Seq[KeyOrigins.Origin], index: ZOrderFileIndex): Boolean =
    columns.forall(_.column.scan.index.plan eq index.plan)
}
