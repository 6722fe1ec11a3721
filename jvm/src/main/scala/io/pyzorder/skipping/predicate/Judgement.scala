package io.pyzorder.skipping.predicate

import org.apache.spark.sql.catalyst.expressions.{EqualNullSafe, Expression, IsNotNull, IsNull}
import org.apache.spark.sql.catalyst.expressions.{Literal, Not}

import io.pyzorder.skipping.predicate.IndexFilter.{Always, Never}
import io.pyzorder.skipping.predicate.Outcomes.{
  Everything, False, NotNull, NotTrue, Nothing, Null, True
}

/** Sets of outcomes that a predicate can have for a row. Each outcome is one bit. */
object Outcomes {
  val Nothing = 0
  val True = 1
  val False = 2
  val Null = 4
  val NotNull = 3
  val NotFalse = 5
  val NotTrue = 6
  val Everything = 7

  /** The predicate that is TRUE for the rows for which `predicate` has one of the outcomes. */
  def test(predicate: Expression, outcomes: Int): Expression = outcomes match {
    case True => predicate
    case False => Not(predicate)
    case Null => IsNull(predicate)
    case NotNull => IsNotNull(predicate)
    case NotTrue => Not(EqualNullSafe(predicate, Literal(true)))
    case NotFalse => Not(EqualNullSafe(predicate, Literal(false)))
  }

  /** The outcomes after NOT, which swaps TRUE and FALSE. */
  def negated(outcomes: Int): Int =
    (outcomes & Null) | (outcomes & True) << 1 | (outcomes & False) >> 1
}

/**
 * The outcomes that a predicate can have for the rows of a file. For each set of outcomes, there is
 * a filter that is true for every file with a row whose outcome is in the set. A file may match if
 * TRUE is possible, and all of its rows match if only TRUE is possible.
 *
 * Judgements are combined row by row. A row's outcome follows from the outcomes of the predicate's
 * parts, so a given outcome requires certain outcomes of the parts. If the parts cannot have these
 * outcomes in a file, the file has no row with the given outcome. The parts are tested file by
 * file, as if each outcome of one part could occur together with each outcome of the other. This
 * may add outcomes but never loses any. It would be wrong to negate a filter: negating "some row
 * may be TRUE" gives "no row is TRUE", but NOT needs "some row may be FALSE".
 *
 * @param isTotal true if evaluating the predicate can never fail
 * @param rule    the filters for some sets, built on first use; the filter for any other set
 *                combines the filters for its single outcomes
 */
final class Judgement private[skipping] (
    val isTotal: Boolean,
    rule: PartialFunction[Int, IndexFilter]) {

  private val filters = new Array[IndexFilter](Everything + 1)

  /** The filter that is true for every file with a row whose outcome is in the set. */
  def may(outcomes: Int): IndexFilter = {
    if (filters(outcomes) == null) filters(outcomes) = outcomes match {
      case Nothing => Never
      case Everything => Always
      case _ => rule.applyOrElse(outcomes, any)
    }
    filters(outcomes)
  }

  private def any(outcomes: Int): IndexFilter =
    Seq(Null, True, False).filter(o => (outcomes & o) != 0).map(may).reduce(IndexFilter.or)

  /** Selects the files to read: those in which some row may make the predicate TRUE. */
  def mayBeTrue: IndexFilter = may(True)

  /**
   * Selects the files in which WHERE may exclude some row. A query that uses values from the index
   * instead of reading files must still read these files.
   */
  def mayNotBeTrue: IndexFilter = may(NotTrue)

  /**
   * The predicate's possible outcomes in a snapshot's files. Nothing is proved from a column for
   * which `facts` returns None.
   */
  def bind(facts: FilterColumn => Option[ColumnStatisticsView]): FileOutcomes =
    new FileOutcomes(may(True).bind(facts), may(False).bind(facts), may(Null).bind(facts))

  def unary_! : Judgement =
    new Judgement(isTotal, { case outcomes => may(Outcomes.negated(outcomes)) })

  /**
   * The judgement of a predicate that `other` judges too. A file with a row whose outcome is in a
   * set passes both filters for the set.
   */
  def agreeing(other: Judgement): Judgement =
    new Judgement(
      isTotal && other.isTotal,
      { case outcomes => IndexFilter.and(may(outcomes), other.may(outcomes)) })

  /**
   * The judgement of AND. A row's outcome is the lesser of its outcomes for the two parts in the
   * order FALSE, NULL, TRUE.
   */
  def and(other: Judgement): Judgement = joined(other, True)

  /**
   * The judgement of OR. A row's outcome is the greater of its outcomes for the two parts in the
   * order FALSE, NULL, TRUE.
   */
  def or(other: Judgement): Judgement = joined(other, False)

  /**
   * For AND, `extreme` is TRUE and its opposite is FALSE. For OR, `extreme` is FALSE and its
   * opposite is TRUE. For a row, the combined outcome is `extreme` only if both parts are
   * `extreme`, and it is `extreme` or NULL only if each part is `extreme` or NULL. It is the
   * opposite only if some part is the opposite, and it is the opposite or NULL only if some part is
   * the opposite or NULL. It is NULL only if some part is NULL and each part is NULL or `extreme`.
   * An error in a part that does not decide the outcome may go unnoticed. The same can happen in
   * Spark, which need not evaluate such a part.
   */
  private def joined(other: Judgement, extreme: Int): Judgement = {
    val opposite = Outcomes.negated(extreme)
    def both(outcomes: Int) = IndexFilter.and(may(outcomes), other.may(outcomes))
    def one(outcomes: Int) = IndexFilter.or(may(outcomes), other.may(outcomes))
    new Judgement(isTotal && other.isTotal,
      {
        case outcomes if (outcomes & ~Null) == extreme => both(outcomes)
        case outcomes if (outcomes & ~Null) == opposite => one(outcomes)
        case Null => IndexFilter.and(one(Null), both(extreme | Null))
      })
  }
}

object Judgement {

  /** The judgement defined by the filters for the three outcomes. */
  def apply(isTotal: Boolean)(
      whenTrue: => IndexFilter,
      whenFalse: => IndexFilter,
      whenNull: => IndexFilter): Judgement =
    new Judgement(isTotal,
      {
        case True => whenTrue
        case False => whenFalse
        case Null => whenNull
      })

  /** The judgement of a predicate whose outcome is `value` (true, false or null) for every row. */
  def constant(value: Any): Judgement = {
    def of(outcome: Any): IndexFilter = if (value == outcome) Always else Never
    Judgement(isTotal = true)(of(true), of(false), of(null))
  }

  /**
   * The judgement of a CASE expression. A row has the outcome of `yes` if the condition is TRUE for
   * the row, and the outcome of `no` otherwise.
   */
  def choice(condition: Judgement, yes: Judgement, no: Judgement): Judgement =
    new Judgement(condition.isTotal && yes.isTotal && no.isTotal,
      {
        case outcomes => IndexFilter.or(
            IndexFilter.and(condition.may(True), yes.may(outcomes)),
            IndexFilter.and(condition.may(NotTrue), no.may(outcomes)))
      })

  /**
   * The judgement of `coalesce`. A row has the outcome of `first` or, if `first` is NULL for the
   * row, the outcome of `rest`.
   */
  def coalesce(first: Judgement, rest: Judgement): Judgement =
    new Judgement(first.isTotal && rest.isTotal,
      {
        case outcomes => IndexFilter.or(
            first.may(outcomes & NotNull), IndexFilter.and(first.may(Null), rest.may(outcomes)))
      })

  /** `=` of two predicates, which is NULL where either predicate is NULL. */
  def equal(left: Judgement, right: Judgement): Judgement = {
    def rows(pairs: (Int, Int)*) = anyPair(left, right, pairs)
    Judgement(left.isTotal && right.isTotal)(
      rows(True -> True, False -> False),
      rows(True -> False, False -> True),
      IndexFilter.or(left.may(Null), right.may(Null)))
  }

  /** `<=>` of two predicates, which is TRUE where both are NULL, and is never NULL itself. */
  def equalNullSafe(left: Judgement, right: Judgement): Judgement = {
    def rows(pairs: (Int, Int)*) = anyPair(left, right, pairs)
    Judgement(left.isTotal && right.isTotal)(
      rows(Null -> Null, True -> True, False -> False),
      rows(Null -> NotNull, True -> NotTrue, False -> Outcomes.NotFalse),
      Never)
  }

  private def anyPair(left: Judgement, right: Judgement, pairs: Seq[(Int, Int)]): IndexFilter =
    pairs.map { case (l, r) => IndexFilter.and(left.may(l), right.may(r)) }.reduce(IndexFilter.or)
}

/** A predicate's possible outcomes in each file of a snapshot. */
final class FileOutcomes(mayBeTrue: FileTest, mayBeFalse: FileTest, mayBeNull: FileTest) {

  /** The outcomes that rows of the file can have. */
  def of(file: Int): Int =
    (if (mayBeTrue.mayMatch(file)) True else Nothing) |
      (if (mayBeFalse.mayMatch(file)) False else Nothing) |
      (if (mayBeNull.mayMatch(file)) Null else Nothing)

  /** Whether the predicate is provably TRUE for every row of the file. */
  def allTrue(file: Int): Boolean = !mayBeFalse.mayMatch(file) && !mayBeNull.mayMatch(file)
}
