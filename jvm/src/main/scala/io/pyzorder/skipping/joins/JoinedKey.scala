package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.expressions.{ExprId, Expression, KnownFloatingPointNormalized}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.execution.FileSourceScanExec

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * A key of a join, expressed in terms of the columns of a plan below the join. Rows of this plan
 * whose key is not among the join's keys do not affect the query's result.
 *
 * @param ordinal  the key's position among the join's keys
 * @param from     the broadcast side; this key must equal one of its keys
 * @param isWaited whether an exchange is between the join and the plan. If so, the plan could start
 *                 before the keys are known
 */
private[joins] final case class JoinedKey(
    column: Expression,
    ordinal: Int,
    from: BroadcastKeys,
    isWaited: Boolean = false) {

  /**
   * The same key, as it appears below an operator that defines the columns in `named`. An aggregate
   * may define a column in terms of itself, so the expression that replaces a column must not
   * itself be rewritten.
   */
  def below(named: Map[ExprId, Expression]): JoinedKey = copy(column = column.transformUp {
    case a: AttributeReference if named.contains(a.exprId) => named(a.exprId)
  })

  /**
   * The key as an expression over the scan's columns, without Spark's ids for these columns. None
   * unless the key is a column of the scanned files, an indexed expression, or an order-preserving
   * function of one of these. A partition column is not a column of the files.
   *
   * Spark compares the keys of a hash join by their bytes. It therefore normalizes the keys on both
   * sides of the join: every NaN to a single NaN, and -0.0 to 0.0. `=` and the index also treat
   * these values as equal, so a filter on the column selects the same files as a filter on the
   * normalized column.
   */
  def of(scan: FileSourceScanExec): Option[ScanKey] = {
    val folders = scan.relation.partitionSchema.fieldNames.toSet
    val known = scan.output.filterNot(a => folders(a.name)).map(a => a.exprId -> a).toMap
    val plain = JoinedKey.withoutNormalization(column)
    val attributes = plain.collect { case a: AttributeReference => a }
    if (attributes.isEmpty || !attributes.forall(a => known.contains(a.exprId))) None
    else {
      val named = plain.transform {
        case a: AttributeReference => JoinedKey.unnumbered(known(a.exprId))
      }
      val spelled = scan.relation.location match {
        case index: ZOrderFileIndex => index.withIndexedExpressions(named)
        case _ => named
      }
      if (FilterColumn.unapply(spelled).isDefined && from.fit(ordinal, spelled))
        Some(ScanKey(spelled, ordinal))
      else None
    }
  }
}

private object JoinedKey {

  private val NoId = ExprId(0, new java.util.UUID(0L, 0L))

  @scala.annotation.tailrec
  private def withoutNormalization(column: Expression): Expression = column match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => withoutNormalization(child)
    case other => other
  }

  private def unnumbered(a: Attribute): AttributeReference =
    AttributeReference(a.name, a.dataType, nullable = true, a.metadata)(NoId)
}
