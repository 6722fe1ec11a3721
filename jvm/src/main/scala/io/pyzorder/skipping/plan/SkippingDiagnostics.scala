package io.pyzorder.skipping.plan

import java.util.IdentityHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.expressions.{KnownFloatingPointNormalized, PlanExpression}
import org.apache.spark.sql.catalyst.expressions.PredicateHelper
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, NormalizeNaNAndZero}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, InnerLike, LeftSemi}
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastHashJoinExec}

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.{ReportingFileIndex, ZOrderFileIndex}
import io.pyzorder.skipping.predicate.FilterColumn

/**
 * Finds conditions that restrict the rows of a query's scans but, contrary to what users may
 * expect, do not skip any files. These are join keys, and conditions that Spark does not pass to
 * the scan (nondeterministic ones and, in Spark 3.5, those with a subquery). The results are only
 * for display; PruneByJoinKeys decides which join keys are used.
 */
final class SkippingDiagnostics private (plan: SparkPlan) extends PredicateHelper {

  private val found = new IdentityHashMap[FileSourceScanExec, mutable.ListBuffer[String]]

  visit(plan, Nil, SkippingDiagnostics.NotAdaptive)

  /**
   * The reasons why conditions do not skip any files of one scan, in order from the top of the
   * plan.
   */
  def of(scan: FileSourceScanExec): Seq[String] =
    Option(found.get(scan)).fold(Seq.empty[String])(_.toList.distinct)

  /** An expression over a plan's columns that filters rows, and why it does not skip any files. */
  private case class RowCondition(expression: Expression, why: String => String)

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
      case project: ProjectExec =>
        val named = getAliasMap(project.projectList)
        visit(
          project.child, asked.map(a => a.copy(expression = replaceAlias(a.expression, named))),
          phase)
      case filter: FilterExec =>
        val kept = splitConjunctivePredicates(filter.condition).collect {
          case drawn if !drawn.deterministic =>
            RowCondition(drawn, condition => s"not usable: $condition (not deterministic)")
          case compared if hasSubquery(compared) =>
            RowCondition(compared,
              condition => s"not usable: $condition (its subquery runs later)")
        }
        visit(filter.child, asked ++ kept, phase)
      case join: BaseJoinExec =>
        Seq(join.left -> join.leftKeys, join.right -> join.rightKeys).foreach {
          case (side, keys) =>
            val why = whyNot(join, side, phase)
            visit(
              side,
              within(asked, side) ++
                keys.map(key => RowCondition(key, name => s"not usable: join key $name ($why)")),
              phase)
        }
      case other => other.children.foreach(child => visit(child, within(asked, child), phase))
    }
  }

  private def within(asked: Seq[RowCondition], plan: SparkPlan): Seq[RowCondition] =
    asked.filter(_.expression.references.subsetOf(plan.outputSet))

  private def whyNot(
      join: BaseJoinExec,
      side: SparkPlan,
      phase: SkippingDiagnostics.Phase): String =
    join match {
      case hash: BroadcastHashJoinExec =>
        if ((hash.buildSide == BuildLeft) == (side eq hash.left))
          "this is the broadcast side, which is read before any key is known"
        else if (!needsPartner(hash)) s"${nameOf(hash)} JOIN also needs unmatched rows"
        else phase match {
          case SkippingDiagnostics.NotAdaptive =>
            "not known before the scan unless spark.sql.adaptive.enabled is true"
          case SkippingDiagnostics.HasNotRun => "known only after the query has run"
          case SkippingDiagnostics.HasRun =>
            "the key is not in the index, there are more keys than " +
              s"${ZOrderConf.joinMaxKeys.key} allows, or the scan is below an operator that " +
              "needs all rows"
        }
      case _ if phase == SkippingDiagnostics.HasNotRun => "known only after the query has run"
      case _ => "both sides are read before any key is known"
    }

  private def needsPartner(join: BroadcastHashJoinExec): Boolean = join.joinType match {
    case _: InnerLike | LeftSemi => true
    case _ => false
  }

  /**
   * The join type in SQL. Spark turns `IN` below OR into an existence join, for which SQL has no
   * name.
   */
  private def nameOf(join: BroadcastHashJoinExec): String = join.joinType match {
    case _: ExistenceJoin => "EXISTENCE"
    case other => other.sql
  }

  /** Records the conditions that could have skipped files but were not used. */
  private def note(scan: FileSourceScanExec, asked: Seq[RowCondition]): Unit =
    scan.relation.location match {
      case index: ZOrderFileIndex if !index.maySkip =>
      case index: ReportingFileIndex =>
        val used = index match {
          case own: ZOrderFileIndex => own.joins.flatMap(_.filter.columns).toSet
          case _ => Set.empty[FilterColumn]
        }
        val ofFolders = scan.relation.partitionSchema.fieldNames.toSet
        val texts = for {
          RowCondition(expression, why) <- asked
          plain = spelled(expression)
          if !plain.references.forall(a => ofFolders(a.name)) || !plain.deterministic
          if FilterColumn.unapply(plain).forall(column => !used(column))
          if !hasSubquery(plain) || !scan.dataFilters.exists(hasSubquery)
        } yield why(plain.sql)
        found.computeIfAbsent(scan, _ => mutable.ListBuffer.empty) ++= texts
      case _ =>
    }

  private def hasSubquery(expression: Expression): Boolean =
    expression.exists(_.isInstanceOf[PlanExpression[_]])

  /**
   * The expression as FilePruner's reasons spell it: column names lack the table's name, and the
   * normalization that Spark adds to floating-point join keys is removed.
   */
  private def spelled(expression: Expression): Expression = {
    val plain = expression match {
      case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
      case other => other
    }
    plain.transform { case a: AttributeReference => a.withQualifier(Nil) }
  }
}

object SkippingDiagnostics {

  private sealed trait Phase
  private case object NotAdaptive extends Phase
  private case object HasNotRun extends Phase
  private case object HasRun extends Phase

  /** The diagnostics of all scans in a plan, including those in subqueries. */
  def apply(plan: SparkPlan): SkippingDiagnostics = new SkippingDiagnostics(plan)
}
