package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.execution.{FilterExec, SparkPlan}
import org.apache.spark.sql.types._

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyValues}

/**
 * Drops the rows of a scan that have none of the keys of a join in a later stage. A file with one
 * of the keys usually contains other rows, too, which would otherwise be shuffled, sorted and
 * joined before that join drops them. A join in the scan's own stage drops them early enough.
 *
 * A row without any of the keys does not affect the query's result (see PruneByJoinKeys). This
 * includes rows in which the column is null. Floating-point columns are not tested, because equal
 * values may have different representations. Neither are functions of a column other than widening
 * casts, because they could fail for a row that the query never evaluates them for.
 */
private[joins] object EarlyRowFilter {

  def apply(scan: SparkPlan, keys: Seq[JoinKeyFilter]): SparkPlan =
    keys.flatMap(condition(scan, _)).distinct.reduceOption(And(_, _)).fold(scan) { condition =>
      val filter = FilterExec(condition, scan)
      filter.copyTagsFrom(scan)
      filter
    }

  private def condition(scan: SparkPlan, filter: JoinKeyFilter): Option[Expression] =
    filter.keys match {
      case KeyValues.Each(values) if values.nonEmpty && isExact(filter.column.dataType) =>
        columnOf(scan, filter.column).map(IsJoinKey(_, values))
      case _ => None
    }

  /** Whether two values of this type are equal in Spark only if they are equal as JVM objects. */
  private def isExact(dataType: DataType): Boolean = dataType match {
    case FloatType | DoubleType | BinaryType => false
    case other => FilterColumn.isOrdered(other)
  }

  private def columnOf(scan: SparkPlan, column: Expression): Option[Expression] = column match {
    case a: AttributeReference => scan.output.filter(_.name == a.name) match {
        case Seq(found) if found.dataType == a.dataType => Some(found)
        case _ => None
      }
    case cast: Cast if Cast.canUpCast(cast.child.dataType, cast.dataType) =>
      columnOf(scan, cast.child).map(child => cast.withNewChildren(Seq(child)))
    case _ => None
  }
}

/**
 * Whether a value is one of the keys; null if the value is null. Unlike Spark's InSet, this keeps
 * the keys out of the generated code, which therefore need not be compiled again for other keys.
 */
private[joins] final case class IsJoinKey(child: Expression, keys: Set[Any])
    extends UnaryExpression with Predicate {

  override def nullSafeEval(value: Any): Any = keys.contains(value)

  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode = {
    val set = context.addReferenceObj("joinKeys", keys, classOf[Set[Any]].getName)
    defineCodeGen(context, code, value => s"$set.contains($value)")
  }

  override def toString: String = s"$child is one of ${keys.size} join keys"

  override def sql: String = s"${child.sql} is one of ${keys.size} join keys"

  override protected def withNewChildInternal(newChild: Expression): IsJoinKey =
    copy(child = newChild)
}
