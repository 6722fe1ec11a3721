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
 * Once one side of a hash join has been broadcast, lets the other side's scan, which is planned
 * after that, skip the files that hold none of its keys. Runs each time adaptive execution
 * optimizes the rest of a plan; without adaptive execution, never.
 *
 * Which joins. The scanned side must be one whose rows without a partner leave no trace:
 *  - inner: either side;
 *  - left semi (IN, EXISTS): the left side. A left row without a partner is dropped.
 *
 * An outer join keeps the rows of its preserved side, an anti join (NOT EXISTS, NOT IN) returns
 * just those without a partner, an existence join (IN below OR) says of them "false": there a
 * skipped file is a lost row. The other side of an outer join could be pruned by the keys of the
 * preserved one, but Spark broadcasts the preserved side for no hash join.
 *
 * The pair of keys must be compared by `=`, which is TRUE for no null. Spark gives the keys of
 * `a <=> b` as coalesce(a, …) and isnull(a), which are no columns. All pairs must be equal for two
 * rows to join, therefore each gives a filter of its own; other conditions only drop more.
 *
 * Sorted and shuffled joins give nothing: both sides' shuffles start together, when the plan
 * starts, and a finished shuffle tells its size but not its keys. A join that becomes a broadcast
 * after its small side was shuffled has shuffled, and read, the large side too. Nor is anything
 * gained where Spark keeps the plan it has, because the new one seems to cost more.
 */
case class PruneByJoinKeys(session: shim.SparkSession) extends Rule[LogicalPlan] {

  /** So many rows a key at most are looked through for the keys; a driver has more to do. */
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
   * The plan without files that hold only rows whose keys equal none of the other side's; `wanted`
   * are the keys as the plan's own columns give them. It may be taken below
   *  - a filter or projection: they treat each row for itself;
   *  - a join, on a side each of whose rows decides its results for itself: either side of an inner
   *    one, the left side of left outer, semi and anti ones, the right side of a right outer one;
   * of deterministic expressions only, since what rand() gives a row depends on the rows before.
   * Nowhere else: LIMIT, windows, aggregates, samples, observed metrics depend on what other rows
   * there are.
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
