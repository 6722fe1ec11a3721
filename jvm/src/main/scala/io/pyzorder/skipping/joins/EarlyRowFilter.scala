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
 * values may have different representations. Functions of a column are not tested either, because
 * they could fail for a row that a filter above the scan drops. Casts between exact numbers that
 * only widen the type cannot fail.
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
      case each: KeyValues.Each if each.values.nonEmpty && isExact(filter.column.dataType) =>
        columnOf(scan, filter.column).map(IsJoinKey(_, each))
      case _ => None
    }

  /**
   * Whether two values of this type are equal in Spark only if they are equal as JVM objects, and
   * can be compared quickly.
   */
  private def isExact(dataType: DataType): Boolean = dataType match {
    case FloatType | DoubleType | BinaryType => false
    case decimal: DecimalType => decimal.precision <= Decimal.MAX_LONG_DIGITS
    case other => FilterColumn.isOrdered(other)
  }

  private def columnOf(scan: SparkPlan, column: Expression): Option[Expression] = column match {
    case a: AttributeReference => scan.output.filter(_.name == a.name) match {
        case Seq(found) if found.dataType == a.dataType => Some(found)
        case _ => None
      }
    case cast: Cast
        if isExactNumber(cast.child.dataType) && isExactNumber(cast.dataType) &&
          Cast.canUpCast(cast.child.dataType, cast.dataType) =>
      columnOf(scan, cast.child).map(child => cast.withNewChildren(Seq(child)))
    case _ => None
  }

  private def isExactNumber(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType | _: DecimalType => true
    case _ => false
  }
}

/**
 * Whether a value is one of the keys; null if the value is null. Unlike Spark's InSet, this keeps
 * the keys out of the generated code, which therefore need not be compiled again for other keys.
 * The generated code compares numbers, dates, times and decimals as longs in a sorted array.
 */
private[joins] final case class IsJoinKey(child: Expression, keys: KeyValues.Each)
    extends UnaryExpression with Predicate {

  /** The keys in ascending order, if they are numbers. */
  @transient private lazy val numbers: Option[Array[Long]] = {
    val found = keys.values.toArray.collect {
      case number: java.lang.Number => number.longValue
      case decimal: Decimal => decimal.toUnscaledLong
    }
    java.util.Arrays.sort(found)
    if (found.length == keys.values.size) Some(found) else None
  }

  override def nullSafeEval(value: Any): Any = keys.values.contains(value)

  override protected def doGenCode(context: CodegenContext, code: ExprCode): ExprCode =
    numbers match {
      case Some(sorted) =>
        val array = context.addReferenceObj("joinKeys", sorted, "long[]")
        val asLong = if (child.dataType.isInstanceOf[DecimalType]) ".toUnscaledLong()" else ""
        defineCodeGen(
          context, code, value => s"java.util.Arrays.binarySearch($array, $value$asLong) >= 0")
      case None =>
        val set = context.addReferenceObj("joinKeys", keys.values, classOf[Set[Any]].getName)
        defineCodeGen(context, code, value => s"$set.contains($value)")
    }

  override def toString: String = s"$child is a join key ($keys)"

  override def sql: String = s"${child.sql} is a join key ($keys)"

  override protected def withNewChildInternal(newChild: Expression): IsJoinKey =
    copy(child = newChild)
}
