package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.{JOIN, LOGICAL_QUERY_STAGE}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.pyzorder.BuildSide
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.ZOrderFileIndex

/**
 * Skips files by the keys of a broadcast join. Once one side of a hash join has been broadcast, the
 * other side's scan, which is planned afterwards, skips the files that do not contain any of the
 * keys. The rule runs each time adaptive execution optimizes the rest of a plan, and never without
 * adaptive execution.
 *
 * A join is eligible if the rows of its scanned side that have no match do not affect the result.
 * By join type, the scanned side can be:
 * - inner: either side;
 * - left semi (IN, EXISTS): the left side, because a left row without a match is dropped.
 *
 * An outer join keeps the rows of its preserved side, an anti join (NOT EXISTS, NOT IN) returns
 * exactly the rows without a match, and an existence join (IN below OR) returns "false" for them.
 * In these joins, skipping a file would lose rows. The other side of an outer join could be pruned
 * by the keys of the preserved side, but Spark never broadcasts the preserved side in a hash join.
 *
 * A pair of keys must be compared by `=`, which is never TRUE for a null. Spark represents the keys
 * of `a <=> b` as coalesce(a, …) and isnull(a), which are not columns. Two rows join only if all
 * pairs are equal, so each pair yields its own filter. Any further conditions only drop more rows.
 *
 * Sort-merge and shuffled hash joins do not provide filters. The shuffles of both sides start
 * together when the plan starts, and a finished shuffle reveals its size but not its keys. If a
 * join becomes a broadcast join after its small side was shuffled, the large side has also been
 * read and shuffled already. The rule also has no effect where Spark keeps its current plan because
 * the new one seems more expensive.
 */
case class PruneByJoinKeys(session: shim.SparkSession) extends Rule[LogicalPlan] {

  /** The maximum number of rows, per allowed key, that the driver scans to collect the keys. */
  private val RowsPerKey = 100L

  override def apply(plan: LogicalPlan): LogicalPlan =
    try {
      if (maxKeys == 0) plan
      else plan.transformDownWithPruning(_.containsAllPatterns(JOIN, LOGICAL_QUERY_STAGE)) {
        case join: Join => pruned(join)
      }
    } catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        plan
    }

  private def maxKeys: Int = ZOrderConf.joinMaxKeys.get(session.sessionState.conf)

  private def pruned(join: Join): LogicalPlan = join match {
    case ExtractEquiJoinKeys(joinType, leftKeys, rightKeys, _, _, left, right, _)
        if deterministic(join) =>
      (joinType, left, right) match {
        case (_: InnerLike | LeftSemi, _, BuildSide(build)) if worthwhile(build) =>
          val keys = new BroadcastKeys(build, built = rightKeys, scanned = leftKeys, maxKeys)
          join.withNewChildren(Seq(withKeys(left, keys.wanted, keys), right))
        case (_: InnerLike, BuildSide(build), _) if worthwhile(build) =>
          val keys = new BroadcastKeys(build, built = leftKeys, scanned = rightKeys, maxKeys)
          join.withNewChildren(Seq(left, withKeys(right, keys.wanted, keys)))
        case _ => join
      }
    case _ => join
  }

  private def worthwhile(build: BuildSide): Boolean = build.hasAtMost(RowsPerKey * maxKeys)

  private def deterministic(join: Join): Boolean = join.condition.forall(_.deterministic)

  /**
   * The plan after its scans have been changed to skip the files that do not contain any of the
   * other side's keys. `wanted` contains the keys in terms of the plan's own columns. The filter
   * may be pushed below:
   * - a filter or projection, which treats each row independently;
   * - a join, on a side whose rows contribute to the result independently of each other: either
   *   side of an inner join, the left side of a left outer, semi or anti join, and the right side
   *   of a right outer join.
   *
   * All expressions must be deterministic, because the value of rand() for a row depends on the
   * rows before it. The filter is not pushed below anything else: the results of LIMIT, windows,
   * aggregates, samples and observed metrics depend on which other rows exist.
   */
  private def withKeys(
      plan: LogicalPlan,
      wanted: Seq[JoinedKey],
      keys: BroadcastKeys): LogicalPlan = {
    def below(child: LogicalPlan, keysOfPlan: Seq[JoinedKey] = wanted): LogicalPlan = {
      val own = keysOfPlan.filter(key =>
        key.column.references.nonEmpty && key.column.references.subsetOf(child.outputSet))
      if (own.isEmpty) child else withKeys(child, own, keys)
    }
    plan match {
      case filter: Filter if filter.condition.deterministic =>
        filter.withNewChildren(Seq(below(filter.child)))
      case project: Project if project.projectList.forall(_.deterministic) =>
        val named = project.projectList.collect { case a: Alias => a.exprId -> a.child }.toMap
        val through = wanted.map(_.below(named))
        project.withNewChildren(Seq(below(project.child, through)))
      case join: Join if deterministic(join) =>
        join.joinType match {
          case _: InnerLike => join.withNewChildren(join.children.map(below(_)))
          case LeftSemi | LeftAnti | LeftOuter =>
            join.withNewChildren(Seq(below(join.left), join.right))
          case RightOuter => join.withNewChildren(Seq(join.left, below(join.right)))
          case _ => join
        }
      case relation: LogicalRelation if !relation.isStreaming => scanned(relation, wanted, keys)
      case _ => plan
    }
  }

  private def scanned(
      relation: LogicalRelation,
      wanted: Seq[JoinedKey],
      keys: BroadcastKeys): LogicalRelation =
    relation.relation match {
      case files: HadoopFsRelation =>
        files.location match {
          case index: ZOrderFileIndex if index.maySkip =>
            val found = for {
              key <- wanted
              column <- key.of(relation, files)
              filter <- keys.filter(key, column, index.joins)
            } yield filter
            if (found.isEmpty) relation
            else {
              val pruned = relation.copy(relation =
                files.copy(location = index.withJoins(found))(files.sparkSession))
              pruned.copyTagsFrom(relation)
              pruned
            }
          case _ => relation
        }
      case _ => relation
    }
}
