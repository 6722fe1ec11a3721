package io.pyzorder.skipping.predicate

import io.pyzorder.skipping.predicate.IndexFilter.{Always, Never}
import io.pyzorder.skipping.predicate.Outcomes.{
  Everything, False, NotNull, NotTrue, Nothing, Null, True
}

/** Sets of the outcomes that a predicate can have for a row, as bits. */
object Outcomes {
  val Nothing = 0
  val True = 1
  val False = 2
  val Null = 4
  val NotNull = 3
  val NotFalse = 5
  val NotTrue = 6
  val Everything = 7

  /** What NOT makes of them: TRUE and FALSE change places. */
  def negated(outcomes: Int): Int =
    (outcomes & Null) | (outcomes & True) << 1 | (outcomes & False) >> 1
}

/**
 * The judgement of a predicate: which outcomes can it have for the rows of a file? For each set of
 * outcomes there is a filter that is true for every file with a row whose outcome is in the set. A
 * file may match if it may have TRUE, and all of its rows match if it has nothing but TRUE.
 *
 * Judgements compose by the row: a row's outcome follows from those of the parts, so a file without
 * such parts has no such row. Files are judged part by part, as if each part's outcomes came with
 * all of the other's: that adds outcomes and never loses one. Tempting and wrong: to negate a
 * filter. "Some row may be TRUE" negated is "none is", whereas NOT asks whether some row is FALSE.
 *
 * @param isTotal computing the predicate cannot fail
 * @param rule    the filters of some sets, made when first asked for; of other sets, any outcome
 */
final class Judgement private[skipping] (
    val isTotal: Boolean,
    rule: PartialFunction[Int, IndexFilter]) {

  private val filters = new Array[IndexFilter](Everything + 1)

  /** The filter that is true for every file with a row whose outcome is among these. */
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

  /** The files to read: those with a row that makes the predicate TRUE. */
  def mayBeTrue: IndexFilter = may(True)

  /** The files that an answer from metadata must read: those with a row that WHERE leaves out. */
  def mayNotBeTrue: IndexFilter = may(NotTrue)

  /** The outcomes in a snapshot's files; a column that `facts` does not know may have all. */
  def bind(facts: FilterColumn => Option[ColumnStatisticsView]): FileOutcomes =
    new FileOutcomes(may(True).bind(facts), may(False).bind(facts), may(Null).bind(facts))

  /** NOT. */
  def unary_! : Judgement =
    new Judgement(isTotal, { case outcomes => may(Outcomes.negated(outcomes)) })

  /** AND is the lesser of two, in the order FALSE, NULL, TRUE. */
  def and(other: Judgement): Judgement = joined(other, True)

  /** OR is the greater. */
  def or(other: Judgement): Judgement = joined(other, False)

  /**
   * The whole is `extreme` (or NULL at the least) for a row only where both parts are, and its
   * opposite (or NULL) where one is; it is NULL where one is, if both are NULL or `extreme`. An
   * error in a part that does not decide may go unseen, as it may where Spark stops at the other.
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

  /** By the filters of the three outcomes. */
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

  /** The same outcome for every row: true, false or null. */
  def constant(value: Any): Judgement = {
    def of(outcome: Any): IndexFilter = if (value == outcome) Always else Never
    Judgement(isTotal = true)(of(true), of(false), of(null))
  }

  /** CASE: a row has the outcome of `yes` where the condition is TRUE, of `no` where it is not. */
  def choice(condition: Judgement, yes: Judgement, no: Judgement): Judgement =
    new Judgement(condition.isTotal && yes.isTotal && no.isTotal,
      {
        case outcomes => IndexFilter.or(
            IndexFilter.and(condition.may(True), yes.may(outcomes)),
            IndexFilter.and(condition.may(NotTrue), no.may(outcomes)))
      })

  /** coalesce: a row has the outcome of `first`, or where that is NULL the one of `rest`. */
  def coalesce(first: Judgement, rest: Judgement): Judgement =
    new Judgement(first.isTotal && rest.isTotal,
      {
        case outcomes => IndexFilter.or(
            first.may(outcomes & NotNull), IndexFilter.and(first.may(Null), rest.may(outcomes)))
      })

  /** `=` of two predicates: NULL where one is. */
  def equal(left: Judgement, right: Judgement): Judgement = {
    def rows(pairs: (Int, Int)*) = anyPair(left, right, pairs)
    Judgement(left.isTotal && right.isTotal)(
      rows(True -> True, False -> False),
      rows(True -> False, False -> True),
      IndexFilter.or(left.may(Null), right.may(Null)))
  }

  /** `<=>` of two predicates: TRUE where both are NULL, and itself never NULL. */
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

/** The outcomes in each file of a snapshot. */
final class FileOutcomes(mayBeTrue: FileTest, mayBeFalse: FileTest, mayBeNull: FileTest) {

  /** All that rows of the file can have. */
  def of(file: Int): Int =
    (if (mayBeTrue.mayMatch(file)) True else Nothing) |
      (if (mayBeFalse.mayMatch(file)) False else Nothing) |
      (if (mayBeNull.mayMatch(file)) Null else Nothing)

  /** Proved: the predicate is TRUE for every row of the file. */
  def allTrue(file: Int): Boolean = !mayBeFalse.mayMatch(file) && !mayBeNull.mayMatch(file)
}
