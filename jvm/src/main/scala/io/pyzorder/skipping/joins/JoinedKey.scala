package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeReference, ExprId}
import org.apache.spark.sql.catalyst.expressions.{
  Expression, KnownFloatingPointNormalized, Literal, NamedExpression
}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.joins.BaseJoinExec

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.predicate.FilterColumn

/** Supplies the values, or a superset of the values, that the keys of a join can have. */
private[joins] trait KeySource[Self <: KeySource[Self]] {

  /** Whether the values of the key can be compared with the values of the column. */
  def fit(ordinal: Int, column: Expression): Boolean

  /**
   * A source with a single key, whose values are those of a key of this source and of a key of
   * `other`.
   */
  def or(ordinal: Int, other: Self, ofOther: Int): Self
}

/**
 * A key of a join, expressed in terms of the columns of a plan below the join. Rows of this plan
 * whose key is not among the join's keys do not affect the query's result.
 *
 * @param ordinal  the position of this key among the keys for which the source supplies values
 * @param from     where the values come from; this key must equal one of them
 * @param isWaited whether the plan could start before the keys are known, for example because there
 *                 is an exchange between the join and the plan
 */
private[joins] final case class JoinedKey[Source <: KeySource[Source]](
    column: Expression,
    ordinal: Int,
    from: Source,
    isWaited: Boolean = false) {

  /**
   * The same key, as it appears below an operator that defines the columns in `named`. An aggregate
   * may define a column in terms of itself, so the expression that replaces a column must not
   * itself be rewritten.
   */
  def below(named: Map[ExprId, Expression]): JoinedKey[Source] =
    copy(column = JoinedKey.replaced(column, named))

  /** A key that equals either this key or the other one; it is not known which. */
  def or(other: JoinedKey[Source]): JoinedKey[Source] =
    copy(ordinal = 0, from = from.or(ordinal, other.from, other.ordinal), isWaited = true)

  /** The key as a column of the scan, if its values can be compared with the source's. */
  def of(scan: FileSourceScanExec): Option[ScanKey] =
    JoinedKey.columnOf(scan, column).filter(from.fit(ordinal, _)).map(ScanKey(_, ordinal))
}

private[joins] object JoinedKey {

  private val NoId = ExprId(0, new java.util.UUID(0L, 0L))

  /** The expression, with each column in `named` replaced by its definition. */
  def replaced(expression: Expression, named: Map[ExprId, Expression]): Expression =
    expression.transformUp {
      case a: AttributeReference if named.contains(a.exprId) => named(a.exprId)
    }

  /** The definitions of the aliased columns in a list. */
  def definitions(columns: Seq[NamedExpression]): Map[ExprId, Expression] =
    columns.collect { case a: Alias => a.exprId -> a.child }.toMap

  /**
   * A key as an expression over the scan's columns, without the columns' expression IDs. None
   * unless the key is a column of the scanned files, an indexed expression, or an order-preserving
   * function of one of these. A partition column is not a column of the files.
   *
   * Spark compares the keys of a hash join by their bytes. It therefore normalizes the keys on both
   * sides of the join: every NaN to the canonical NaN, and -0.0 to 0.0. `=` and the index also
   * treat these values as equal, so a filter on the column selects the same files as a filter on
   * the normalized column.
   */
  def columnOf(scan: FileSourceScanExec, key: Expression): Option[Expression] = {
    val folders = scan.relation.partitionSchema.fieldNames.toSet
    val known = scan.output.filterNot(a => folders(a.name)).map(_.exprId).toSet
    val plain = withoutNormalization(key)
    val attributes = plain.collect { case a: AttributeReference => a.exprId }
    if (attributes.isEmpty || !attributes.forall(known)) None
    else {
      val named = unnumbered(scan, plain)
      val spelled = scan.relation.location match {
        case index: ZOrderFileIndex => index.withPlannedExpressions(named)
        case _ => named
      }
      FilterColumn.unapply(spelled).map(_ => spelled)
    }
  }

  /** The expression over the scan's columns, without the columns' expression IDs. */
  def unnumbered(scan: FileSourceScanExec, expression: Expression): Expression = {
    val known = scan.output.map(a => a.exprId -> a).toMap
    expression.transform {
      case a: AttributeReference => withoutId(known.getOrElse(a.exprId, a))
    }
  }

  /**
   * Whether every non-null value of the key in a join's rows is also a value of the key in the rows
   * of this side of the join. In the rows for which an outer join finds no match, all columns of
   * the other side are null. A key such as `coalesce(d, 7)` is not null in these rows.
   */
  def keepsValues(join: BaseJoinExec, side: SparkPlan, key: Expression): Boolean = {
    val addsNulls = join.joinType match {
      case _: InnerLike | LeftSemi | LeftAnti | _: ExistenceJoin => false
      case LeftOuter => side eq join.right
      case RightOuter => side eq join.left
      case _ => true
    }
    !addsNulls || isNullOfNulls(key)
  }

  /** Whether the value of the key is null in a row in which all columns are null. */
  private def isNullOfNulls(key: Expression): Boolean =
    try key.transform { case a: AttributeReference => Literal(null, a.dataType) }.eval() == null
    catch { case NonFatal(_) => false }

  /**
   * Whether the join key `joined` is `key` itself, so that `key` has the same value as the other
   * key of the pair. Values that are equal under a collation may differ.
   */
  def equal(joined: Expression, key: Expression): Boolean =
    joined.semanticEquals(key) && FilterColumn.isOrdered(joined.dataType)

  /** The key as it is shown to users, without normalization or table names. */
  def displayed(key: Expression): Expression = withoutNormalization(key).transform {
    case a: AttributeReference => a.withQualifier(Nil)
  }

  @scala.annotation.tailrec
  private def withoutNormalization(column: Expression): Expression = column match {
    case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => withoutNormalization(child)
    case other => other
  }

  private def withoutId(a: Attribute): AttributeReference =
    AttributeReference(a.name, a.dataType, nullable = true, a.metadata)(NoId)
}
