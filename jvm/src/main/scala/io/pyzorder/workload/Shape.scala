package io.pyzorder.workload

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._

import io.pyzorder.skipping.predicate.FilterColumn

/**
 * The form of the conditions on one scan. Scans whose conditions differ only in constants have the
 * same shape.
 *
 * @param filters  conditions in SQL, sorted, with `?` in place of each constant that is compared
 * @param joinKeys the columns, in SQL, whose values must occur on the other side of a join; sorted
 */
private[pyzorder] final case class Shape(filters: Seq[String], joinKeys: Seq[String])

private[pyzorder] object Shape {

  /** The maximum number of filters and of join keys of one shape. */
  val MaxParts = 16

  /** The maximum length of one filter or join key, in characters. */
  val MaxLength = 1000

  /** The maximum number of constants that are kept of an IN list, and of the values of a key. */
  private[workload] val MaxListed = 16

  /**
   * The shape of a scan's conditions, and an example of it: the filters with their constants, and
   * then a condition for each join key, which is empty if the values of the key are not known. None
   * if no condition can be recorded. These conditions cannot: those that contain a subquery or a
   * user-defined function, nondeterministic ones, those on `_metadata`, and those whose text is too
   * long.
   *
   * @param values the values of the join keys
   */
  private[workload] def of(
      scan: ScanConditions,
      values: JoinedValues): Option[(Shape, Seq[String])] = {
    def isRecordable(condition: Expression): Boolean =
      condition.references.nonEmpty && FilterColumn.isEvaluable(condition) &&
        !condition.exists {
          case _: UserDefinedExpression => true
          case column: AttributeReference => FilterColumn.isMetadata(column)
          case _ => false
        }
    val filters = for {
      filter <- scan.filters
      if isRecordable(filter) && !scan.isImplied(filter)
      shape <- sql(withoutConstants(filter))
      example <- sql(withFewConstants(filter))
    } yield shape -> example
    val keys = for {
      key <- scan.joinKeys
      if isRecordable(key.expression)
      column <- sql(key.expression)
    } yield column -> key
    val ofFilters = filters.distinct.sorted.take(MaxParts)
    val ofKeys = keys.groupBy(_._1).toSeq.sortBy(_._1).take(MaxParts)
    if (ofFilters.isEmpty && ofKeys.isEmpty) None
    else {
      val conditions = ofKeys.map { case (_, keys) =>
        keys.iterator.flatMap { case (_, key) =>
          values.conditions(key, scan.index).flatMap(sql(_))
        }
          .find(_ => true).getOrElse("")
      }
      Some(Shape(ofFilters.map(_._1), ofKeys.map(_._1)) -> (ofFilters.map(_._2) ++ conditions))
    }
  }

  /** Replaces the constants that columns are compared with. Arguments of functions are kept. */
  private def withoutConstants(condition: Expression): Expression = condition.transformUp {
    case in @ In(value, listed) if isListed(in) => In(value, Seq(hidden(listed.head)))
    case InSet(value, _) => In(value, Seq(hidden(Literal.default(value.dataType))))
    case compared @ (_: BinaryComparison | _: StringPredicate | _: StringRegexExpression) =>
      compared.mapChildren(hidden)
  }

  private def hidden(expression: Expression): Expression = expression match {
    case constant: Literal => PrettyAttribute("?", constant.dataType)
    case other => other
  }

  private def isListed(in: In): Boolean =
    in.list.nonEmpty && in.list.forall(_.isInstanceOf[Literal])

  private def withFewConstants(condition: Expression): Expression = condition.transformUp {
    case in @ In(value, listed) if isListed(in) => In(value, some(listed))
    case InSet(value, constants) => In(value, some(constants.toSeq).map(Literal(_, value.dataType)))
  }

  /** At most MaxListed of the elements, evenly distributed. */
  private def some[T](elements: Seq[T]): Seq[T] =
    if (elements.length <= MaxListed) elements
    else Seq.tabulate(MaxListed)(i => elements(i * elements.length / MaxListed))

  private def sql(expression: Expression): Option[String] =
    try {
      val text = expression.transform { case a: AttributeReference => a.withQualifier(Nil) }.sql
      if (text.length <= MaxLength) Some(text) else None
    } catch { case NonFatal(_) => None } // a constant without SQL
}
