package io.pyzorder.skipping.predicate

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike

/**
 * A predicate without a rule of its own, evaluated where that tells all: in a file whose every row
 * has the same value in each column that it names, what it says of one row it says of all. FALSE
 * and NULL leave them all out; an error leaves them in, for it is the query's to raise.
 *
 * The same value means: no null, no NaN, both bounds equal (all between them are equal then, exact
 * bounds or not), and not zero where there are two of them. Equal in the binary order means
 * identical, so that no function can tell the rows apart; deterministic functions don't by
 * themselves, and a user's own are not believed. Nor are those believed that read the session's
 * settings while they are evaluated: a DataFrame is planned once, and may run under others later.
 *
 * @param columns   the columns it names, not their functions
 * @param predicate over them, column i as BoundReference i
 */
final case class ConstantFileFilter(columns: Seq[FilterColumn], predicate: Expression)
    extends IndexFilter {

  override private[skipping] def bound(
      facts: FilterColumn => Option[ColumnStatisticsView]): Option[FileTest] = {
    val known = columns.map(facts)
    if (known.exists(_.isEmpty)) None else Some(test(known.flatten.toArray))
  }

  private def test(facts: Array[ColumnStatisticsView]): FileTest = new FileTest {
    override def mayMatch(file: Int): Boolean =
      !facts.forall(_.oneValue(file)) || {
        val row = InternalRow.fromSeq(facts.toSeq.map(_.min(file)))
        try predicate.eval(row) == true
        catch { case NonFatal(_) => true }
      }
  }

  override def toString: String = {
    val shown = predicate.transform { case BoundReference(i, dataType, _) =>
      PrettyAttribute(columns(i).sql("_minValue"), dataType)
    }
    s"(NOT one_value(${columns.map(_.sql("")).mkString(", ")}) OR ${shown.sql})"
  }
}

object ConstantFileFilter {

  /** None: it must not be evaluated here, or names no column, or one without statistics. */
  def of(predicate: Expression): Option[ConstantFileFilter] =
    if (!predicate.deterministic) None
    else {
      val columns = mutable.LinkedHashMap.empty[FilterColumn, BoundReference]
      val bound = predicate.transformDown {
        case FilterColumn(column) if column.through.isEmpty =>
          columns.getOrElseUpdate(
            column, BoundReference(columns.size, column.dataType, nullable = true))
      }
      if (columns.isEmpty || bound.exists(isRefused)) None
      else Some(ConstantFileFilter(columns.keys.toSeq, bound))
    }

  /**
   * Code of users, what has no value by itself (a column without statistics is left of that kind),
   * and what may take long or much memory.
   */
  private def isRefused(expression: Expression): Boolean = expression match {
    case _: UserDefinedExpression | _: InvokeLike | _: PlanExpression[_] => true
    // They read spark.sql.legacy.timeParserPolicy.
    case _: TimestampFormatterHelper | _: JsonToStructs | _: CsvToStructs => true
    case _: Unevaluable | _: HigherOrderFunction | _: Generator => true
    case _: StringRepeat | _: StringSpace | _: StringLPad | _: StringRPad => true
    case _: Sequence | _: ArrayRepeat => true
    case _: RLike | _: LikeAll | _: LikeAny | _: RegExpReplace | _: RegExpExtractBase => true
    case _ => false
  }
}
