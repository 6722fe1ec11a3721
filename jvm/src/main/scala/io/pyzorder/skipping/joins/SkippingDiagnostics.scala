package io.pyzorder.skipping.joins

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{
  AQEShuffleReadExec, AdaptiveSparkPlanExec, QueryStageExec
}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.{KeyBounds, ReportingFileIndex, ZOrderFileIndex}
import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Finds conditions that restrict the rows of a query's scans but, contrary to what users may
 * expect, skip no files. These are join keys, and conditions that Spark does not pass to the scan
 * (nondeterministic ones and, in Spark 3.5, those with a subquery). Also finds the join keys by
 * which a scan drops rows (see EarlyRowFilter). The results are only for display; PruneByJoinKeys
 * decides which join keys are used.
 */
final class SkippingDiagnostics private (plan: SparkPlan) extends PredicateHelper {

  private val found = new IdentityHashMap[FileSourceScanExec, mutable.ListBuffer[String]]

  visit(plan, Nil, SkippingDiagnostics.NotAdaptive)

  /**
   * Why conditions skip no files of one scan, and by which join keys the scan drops rows, in order
   * from the top of the plan.
   */
  def of(scan: FileSourceScanExec): Seq[String] =
    Option(found.get(scan)).fold(Seq.empty[String])(_.toList.distinct)

  /**
   * An expression over a plan's columns that filters rows, and why it skips no files.
   *
   * @param why      returns the reason, given the expression's text, the obstacle, and a reason for
   *                 when no other is known
   * @param obstacle why join keys from above do not reach the plan, if an operator in between
   *                 blocks them
   */
  private case class RowCondition(
      expression: Expression,
      why: (String, Option[String], () => String) => String,
      obstacle: Option[String] = None) {

    def behind(what: String): RowCondition = copy(obstacle = obstacle.orElse(Some(what)))
  }

  private def visit(
      plan: SparkPlan,
      asked: Seq[RowCondition],
      phase: SkippingDiagnostics.Phase): Unit = {
    plan.subqueries.foreach(visit(_, Nil, SkippingDiagnostics.NotAdaptive))
    plan match {
      case adaptive: AdaptiveSparkPlanExec =>
        val phase =
          if (adaptive.isFinalPlan) SkippingDiagnostics.HasRun else SkippingDiagnostics.HasNotRun
        visit(adaptive.executedPlan, asked, phase)
      case stage: QueryStageExec => visit(stage.plan, asked, phase)
      case scan: FileSourceScanExec => note(scan, asked)
      case keyed: ScanWithKeysExec =>
        val awaited =
          if (keyed.isDone) Nil
          else keyed.restrictions.columns.collect { case FilterColumn(c) => c }
        visit(
          keyed.scan,
          asked.map(a =>
            FilterColumn.unapply(spelled(a.expression)).filter(awaited.contains)
              .fold(a)(_ => a.copy(obstacle = Some(SkippingDiagnostics.Later)))),
          phase)
        keyed.sides.foreach(visit(_, Nil, phase))
      case project: ProjectExec =>
        val named = getAliasMap(project.projectList)
        val below = behindRandom(asked, project.projectList)
        visit(
          project.child, below.map(a => a.copy(expression = replaceAlias(a.expression, named))),
          phase)
      case filter: FilterExec =>
        val conditions = splitConjunctivePredicates(filter.condition)
        val early = conditions.collect { case IsJoinKey(key, _) =>
          s"drops rows by join key ${spelled(key).sql}"
        }
        filter.collectFirst { case scan: FileSourceScanExec if early.nonEmpty => add(scan, early) }
        val kept = conditions.collect {
          case drawn if !drawn.deterministic =>
            RowCondition(drawn, (condition, _, _) => s"not usable: $condition (not deterministic)")
          case compared if FilterColumn.hasSubquery(compared) =>
            RowCondition(compared,
              (condition, _, _) => s"not usable: $condition (its subquery runs later)")
        }
        visit(filter.child, behindRandom(asked, conditions) ++ kept, phase)
      case join: BaseJoinExec =>
        val (ofLeft, ofRight) = (join.leftKeys, join.rightKeys)
        Seq((join.left, ofLeft, ofRight), (join.right, ofRight, ofLeft)).foreach {
          case (side, keys, others) =>
            val conditions = keys.zip(others).map { case (key, other) =>
              val why = whyNot(join, side, key, other, phase)
              RowCondition(
                key,
                (name, obstacle, ofScan) =>
                  s"not usable: join key $name (${why(obstacle).getOrElse(ofScan())})")
            }
            visit(side, within(asked, side) ++ conditions, phase)
        }
      case exchange: Exchange =>
        visit(exchange.child, asked.map(_.behind(NotAwaited.Starts)), phase)
      case passing if SkippingDiagnostics.passesKeys(passing) =>
        val below = behindRandom(asked, passing.expressions)
        passing.children.foreach(child => visit(child, within(below, child), phase))
      case other =>
        val all = s"the scan is below ${other.nodeName}, which needs all rows"
        other.children.foreach(child =>
          visit(child, within(asked, child).map(_.behind(all)), phase))
    }
  }

  /**
   * Join keys do not pass expressions that are not deterministic, because the result of such an
   * expression depends on the rows before.
   */
  private def behindRandom(
      asked: Seq[RowCondition],
      expressions: Seq[Expression]): Seq[RowCondition] =
    expressions.find(!_.deterministic).fold(asked) { drawn =>
      val why = s"the scan is below ${spelled(drawn).sql}, which is not deterministic"
      asked.map(_.behind(why))
    }

  private def within(asked: Seq[RowCondition], plan: SparkPlan): Seq[RowCondition] =
    asked.filter(_.expression.references.subsetOf(plan.outputSet))

  /**
   * Returns a function from a RowCondition's obstacle to the reason why a join key skips no files
   * on one side of the join. None if the reason lies in the scan.
   *
   * @param own   the key on this side
   * @param other the corresponding key on the other side
   */
  private def whyNot(
      join: BaseJoinExec,
      side: SparkPlan,
      own: Expression,
      other: Expression,
      phase: SkippingDiagnostics.Phase): Option[String] => Option[String] = {
    val isLeft = side eq join.left
    val (left, right) = KeyPushdown.prunable(join)
    val fixed = join match {
      case hash: BroadcastHashJoinExec if (hash.buildSide == BuildLeft) == isLeft =>
        Some("this is the broadcast side, which is read before any key is known")
      case _ if !(if (isLeft) left else right) =>
        Some(s"${nameOf(join)} JOIN also needs unmatched rows")
      case _ if ZOrderConf.joinMaxKeys.get(join.conf) == 0 =>
        Some(s"${ZOrderConf.joinMaxKeys.key} is 0")
      case _: BroadcastHashJoinExec =>
        if (join.conf.exchangeReuseEnabled) None else Some("spark.sql.exchange.reuse is false")
      case _ if phase == SkippingDiagnostics.HasNotRun => Some(SkippingDiagnostics.Later)
      case _ => None
    }
    def otherwise: Option[String] = join match {
      case _: BroadcastHashJoinExec => None
      case _ =>
        val isShared = KeyOrigins(side, own).exists(_.exists(_.column.scan.index.isShared))
        val others = if (isLeft) join.right else join.left
        val isKnown = KeyOrigins(others, other).isDefined
        val costly = ShuffledKeys.obstacle(others).map(", because " + _)
        Some("both sides are read before any key is known, and " +
          (if (isShared) "a subquery of the query or of Spark may read the same table"
           else if (isKnown) "the key ranges on the other side do not rule out any files" +
             costly.fold("")("; its keys are not cheap to compute" + _)
           else "the other side's key is neither in an index nor cheap to compute" +
             costly.getOrElse("")))
    }
    obstacle =>
      fixed.orElse(obstacle.filter(_ != NotAwaited.Starts)).orElse(otherwise).orElse(obstacle)
  }

  /**
   * The join type in SQL. Spark turns `IN` below OR into an existence join, for which SQL has no
   * name.
   */
  private def nameOf(join: BaseJoinExec): String = join.joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other => other.sql
  }

  /** Records the conditions that could have skipped files but were not used. */
  private def note(scan: FileSourceScanExec, asked: Seq[RowCondition]): Unit =
    scan.relation.location match {
      case index: ZOrderFileIndex if !index.maySkip =>
      case index: ReportingFileIndex =>
        val used = index match {
          case own: ZOrderFileIndex => own.restricted
          case _ => Set.empty[FilterColumn]
        }
        val isFew = ScanWithKeysExec.indexOf(scan).exists(!_.isWorthKeys)
        val ofFolders = scan.relation.partitionSchema.fieldNames.toSet
        val texts = for {
          RowCondition(expression, why, obstacle) <- asked
          plain = spelled(expression)
          if !plain.references.forall(a => ofFolders(a.name)) || !plain.deterministic
          if FilterColumn.unapply(plain).forall(column => !used(column))
          if !FilterColumn.hasSubquery(plain) || !scan.dataFilters.exists(FilterColumn.hasSubquery)
        } yield {
          val blocked =
            if (isFew) Some(SkippingDiagnostics.Few)
            else obstacle.map(whyNotAwaited(scan, expression, _))
          why(plain.sql, blocked, () => ofScan(scan, index, expression))
        }
        add(scan, texts)
      case _ =>
    }

  /** Why the keys of a broadcast that reaches the scan skip no files. */
  private def ofScan(
      scan: FileSourceScanExec,
      index: ReportingFileIndex,
      key: Expression): String = (index, JoinedKey.columnOf(scan, key)) match {
    case (own: ZOrderFileIndex, Some(column)) =>
      val files = KeyOrigins.scanOf(own, scan)
      if (!KeyBounds.isIndexed(files, column)) "the key is not in the index"
      else if (KeyBounds.isEverywhere(files, column)) CheapKeys.Everywhere
      else "the other side has too many rows to collect its keys"
    case _ => "the key is not in the index"
  }

  private def add(scan: FileSourceScanExec, texts: Seq[String]): Unit =
    found.computeIfAbsent(scan, _ => mutable.ListBuffer.empty) ++= texts

  private def whyNotAwaited(
      scan: FileSourceScanExec,
      key: Expression,
      obstacle: String): String =
    if (obstacle != NotAwaited.Starts) obstacle
    else NotAwaited.why(scan, key).getOrElse(obstacle)

  /**
   * The expression as it is shown in FilePruner's reasons: column names lack the table's name, and
   * floating-point join keys lack the normalization that Spark adds.
   */
  private def spelled(expression: Expression): Expression = JoinedKey.displayed(expression)
}

object SkippingDiagnostics {

  private sealed trait Phase
  private case object NotAdaptive extends Phase
  private case object HasNotRun extends Phase
  private case object HasRun extends Phase

  private val Later = "known only after the query has run"
  private val Few = "the table is so small that finding the keys would take longer than reading it"

  /** Whether join keys from above the operator may reach the scans below it. */
  private def passesKeys(plan: SparkPlan): Boolean = plan match {
    case _: SkippingScanExec | _: SortExec | _: UnionExec | _: BaseAggregateExec => true
    case _: ColumnarToRowTransition | _: RowToColumnarTransition | _: AQEShuffleReadExec => true
    case _: WholeStageCodegenExec | _: InputAdapter => true
    case _ => plan.children.isEmpty
  }

  /** The diagnostics of all scans in a plan, including those in subqueries. */
  def apply(plan: SparkPlan): SkippingDiagnostics = new SkippingDiagnostics(plan)
}
