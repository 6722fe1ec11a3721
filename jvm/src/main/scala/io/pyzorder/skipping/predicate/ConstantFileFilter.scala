package io.pyzorder.skipping.predicate

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.objects.InvokeLike

/**
 * Evaluates a predicate for which the rules cannot prove anything. For some files, one evaluation
 * suffices: if every row of a file has the same value in each column that the predicate references,
 * the predicate's outcome for one row is its outcome for all rows. If this outcome is FALSE or
 * NULL, no row of the file matches. If evaluation fails, the file is kept, because the query must
 * raise the error.
 *
 * "The same value" means that the column contains no null and no NaN, that the two bounds are
 * equal, and that the value is not zero if the type has two zeros. If the bounds are equal, all
 * values between them are equal to them, whether or not the bounds are exact. Values that are equal
 * in the binary order are identical, so no function can tell the rows apart. Deterministic
 * functions always return the same result for the same row, but a user-defined function's claim to
 * be deterministic is not trusted. Functions that are known to read session settings during
 * evaluation are also excluded, because a DataFrame is planned once and may run later under other
 * settings.
 *
 * @param columns   the referenced columns, not functions of them
 * @param predicate the predicate, in which column i is BoundReference i
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

  /**
   * The filter for a predicate; None if the predicate references no column, if one of its columns
   * cannot have statistics, or if this filter must not evaluate the predicate.
   */
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

  /** The maximum number of percent signs in the pattern of LIKE. */
  private val MostPercentSigns = 2

  /**
   * Whether the expression is user code, reads session settings, may take a lot of time or memory,
   * or cannot be evaluated on its own. A column that cannot have statistics remains an attribute,
   * which cannot be evaluated.
   */
  private def isRefused(expression: Expression): Boolean = expression match {
    case _: UserDefinedExpression | _: InvokeLike | _: PlanExpression[_] => true
    // These expressions read the setting spark.sql.legacy.timeParserPolicy.
    case _: TimestampFormatterHelper | _: JsonToStructs | _: CsvToStructs => true
    case _: Unevaluable | _: HigherOrderFunction | _: Generator => true
    case _: StringRepeat | _: StringSpace | _: StringLPad | _: StringRPad => true
    case _: Sequence | _: ArrayRepeat => true
    case _: RLike | _: MultiLikeBase | _: RegExpReplace | _: RegExpExtractBase => true
    case _: StringSplit | _: StringToMap | _: FormatString | _: Levenshtein => true
    // Java's matcher tries all ways to divide the value among the percent signs.
    case Like(_, Literal(pattern, _), _) =>
      String.valueOf(pattern).count(_ == '%') > MostPercentSigns
    case _: Like => true
    case _ => false
  }
}
