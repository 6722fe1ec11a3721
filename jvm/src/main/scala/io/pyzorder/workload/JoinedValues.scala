package io.pyzorder.workload

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.execution.{InputAdapter, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanHelper
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.pyzorder.BuildSide
import org.apache.spark.sql.types.{DataType, DoubleType, FloatType}

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.predicate.{FilterColumn, RangeUnion}

/**
 * The values that the keys of a finished query's joins had. They are known if a side of the join
 * was broadcast, which is also when the other side can skip files by them.
 *
 * @param plan         the plan that was executed
 * @param isRecordable whether the values may be recorded
 */
private[workload] final class JoinedValues(plan: SparkPlan, isRecordable: Boolean)
    extends AdaptiveSparkPlanHelper {
  import JoinedValues._

  /** The keys of broadcast sides. A side that was never executed has no rows. */
  private lazy val broadcast: Seq[(Expression, BuildSide)] =
    collectWithSubqueries(plan) { case join: BroadcastHashJoinExec =>
      val build = Seq(join.left, join.right).map {
        case InputAdapter(side) => side // if there is whole-stage code generation
        case side => side
      }.flatMap(BuildSide.unapply)
        .filter(side => (1L to MostRows).contains(side.rowCount))
      build.flatMap(side =>
        (join.leftKeys ++ join.rightKeys)
          .filter(_.references.subsetOf(side.side.outputSet)).map(_ -> side))
    }.flatten

  /**
   * Conditions that are met by the rows whose key equals a value of the other side of the join. The
   * shorter ones may also be met by other rows. Empty if the values are not known or must not be
   * recorded. Values that occur in no indexed file of the table are left out, unless all are: a
   * table of days often contains many more days than the table that it is joined with, and ranges
   * would have to contain these as well.
   */
  def conditions(key: ScanConditions.Key, index: ZOrderFileIndex): Iterator[Expression] = {
    val dataType = key.expression.dataType
    val side =
      if (!isRecordable || dataType != key.other.dataType || !isSupported(dataType)) None
      else broadcast.collectFirst { case (own, side) if own.semanticEquals(key.other) => side }
    side.iterator.flatMap { side =>
      side.valuesOf(Seq(key.other), side.side.output, MostRows).iterator.flatMap { rows =>
        val all = rows.map(_.head).filter(_ != null).toVector.distinct
        val found = all.filter(occursIn(index, key.expression))
        val values = if (found.isEmpty) all else found
        Lengths.iterator.flatMap(length => condition(key.expression, values, length))
      }
    }
  }
}

private object JoinedValues {

  /** The maximum number of rows of a broadcast side whose keys are read. */
  private val MostRows = 10000L

  /** The maximum numbers of values or ranges in a condition. */
  private val Lengths = Seq(Shape.MaxListed, 8, 4, 2, 1)

  /** Floating point values are left out, because NaN lies in no range. */
  private def isSupported(dataType: DataType): Boolean =
    FilterColumn.isOrdered(dataType) && dataType != FloatType && dataType != DoubleType

  /** Whether a value of the key may occur in the files. */
  private def occursIn(index: ZOrderFileIndex, key: Expression): Any => Boolean =
    FilterColumn.unapply(key).flatMap(index.values(_, Shape.MaxListed))
      .fold[Any => Boolean](_ => true)(_.test(key.dataType))

  /** None if there are no values. None of the values may be null, and they must be distinct. */
  private def condition(column: Expression, values: Seq[Any], length: Int): Option[Expression] = {
    def literal(value: Any): Literal = Literal(value, column.dataType)
    if (values.isEmpty) None
    else if (values.length <= length) {
      val order = TypeUtils.getInterpretedOrdering(column.dataType)
      Some(In(column, values.sorted(order).map(literal)))
    } else {
      val union = new RangeUnion(column.dataType, length, values.length)
      values.foreach(value => union.add(value, value))
      union.result.map { case (low, high) =>
        if (low == high) EqualTo(column, literal(low))
        else And(
          GreaterThanOrEqual(column, literal(low)), LessThanOrEqual(column, literal(high)))
      }.reduceOption[Expression](Or(_, _))
    }
  }
}
