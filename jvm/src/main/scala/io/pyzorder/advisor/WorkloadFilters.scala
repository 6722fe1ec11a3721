package io.pyzorder.advisor

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Distinct, Filter, Join, JoinHint, Limit}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.{JobDescription, ZOrderConf}
import io.pyzorder.index.model.{EvaluationSettings, IndexedColumn}
import io.pyzorder.skipping.predicate.{FilterColumn, IndexFilter, IndexedExpressions}
import io.pyzorder.skipping.predicate.{JoinKeyFilter, KeyValues, PredicateRules}
import io.pyzorder.storage.ExactFileIndex

/**
 * A condition from a workload and the index filter derived from it.
 *
 * @param sql    the condition as written in the workload
 * @param filter the index filter; Always if the condition cannot be used to skip files
 * @param reason why the condition cannot be used to skip files; None if it can
 */
final case class WorkloadFilter(sql: String, filter: IndexFilter, reason: Option[String])

/**
 * Applies the data skipping rules to turn a workload's conditions into index filters. Spark
 * optimizes each condition as a filter on the table, but does not read the table.
 *
 * @param expressions expressions for which an index would have statistics
 */
final class WorkloadFilters(
    session: shim.SparkSession,
    table: ResolvedTable,
    expressions: Seq[IndexedColumn])
    extends PredicateHelper {
  import WorkloadFilters._

  private val conf = session.sessionState.conf

  private val indexed = new IndexedExpressions(
    table.dataSchema, expressions, EvaluationSettings.of(conf), conf.sessionLocalTimeZone)

  private val relation: LogicalRelation = LogicalRelation(HadoopFsRelation(
      new ExactFileIndex(table.root, table.partitionSchema, Nil),
      table.partitionSchema,
      table.dataSchema,
      bucketSpec = None,
      table.relation.fileFormat,
      table.options)(session))

  /** The filter for a predicate that refers only to columns of the table. */
  def ofPredicate(sql: String): WorkloadFilter = attempt(sql) {
    val plan = shim.dataFrame(session, relation).where(sql).queryExecution.optimizedPlan
    val filter =
      if (!plan.exists(_.isInstanceOf[LogicalRelation])) IndexFilter.Never
      else {
        val conditions = plan.collect { case Filter(condition, _) => condition }
        PredicateRules(
          conditions.flatMap(splitConjunctivePredicates).map(c => indexed.in(spelled(c)))).mayBeTrue
      }
    WorkloadFilter(sql, filter, if (filter == IndexFilter.Always) Some(Unproved) else None)
  }

  /**
   * The filter that a query would derive from a join's keys after broadcasting the other side of
   * the join.
   *
   * @param column      a SQL expression over the table's columns
   * @param other       the rows of the other side. Their column `_zorder_key` is joined to `column`
   * @param isBroadcast whether the workload is known to broadcast the other side; if false, Spark's
   *                    broadcast threshold decides
   */
  def ofJoin(
      sql: String,
      column: String,
      other: shim.DataFrame,
      isBroadcast: Boolean): WorkloadFilter =
    attempt(sql) {
      val maxKeys = ZOrderConf.joinMaxKeys.get(conf)
      val size = other.queryExecution.optimizedPlan.stats.sizeInBytes
      if (maxKeys == 0) unused(sql, s"${ZOrderConf.joinMaxKeys.key} is 0")
      else if (!conf.adaptiveExecutionEnabled) unused(sql, "spark.sql.adaptive.enabled is false")
      else if (!isBroadcast && size > conf.autoBroadcastJoinThreshold) {
        unused(sql, "the other side is too large to be broadcast")
      } else joined(sql, column, other.queryExecution.analyzed, maxKeys)
    }

  private def joined(
      sql: String,
      column: String,
      other: LogicalPlan,
      maxKeys: Int): WorkloadFilter = {
    val scanned = shim.dataFrame(session, relation).selectExpr(s"$column AS $Scanned")
    val equal = EqualTo(UnresolvedAttribute.quoted(Scanned), UnresolvedAttribute.quoted(Key))
    val join = Join(scanned.queryExecution.analyzed, other, Inner, Some(equal), JoinHint.NONE)
    val pair = shim.dataFrame(session, join).queryExecution.analyzed.collectFirst {
      case Join(Project(Seq(named: Alias), _), right, _, Some(EqualTo(left, key)), _) =>
        (spelled(left.transform { case a: Attribute if a.exprId == named.exprId => named.child }),
          Project(Seq(Alias(key, Key)()), right))
    }
    val found = pair.flatMap { case (left, keys) =>
      if (FilterColumn.unapply(left).isEmpty) None
      else {
        val most = RowsPerKey * maxKeys
        val rows = values(keys, most + 1)
        if (rows.length > most) None
        else {
          val builder = new KeyValues.Builder(left.dataType, maxKeys)
          rows.foreach(row => builder.add(row.get(0, left.dataType)))
          JoinKeyFilter.of(left, builder.result, sql)
        }
      }
    }
    found.fold(unused(sql, "the keys cannot be used to skip files"))(keys =>
      WorkloadFilter(sql, keys.filter, None))
  }

  private def values(keys: LogicalPlan, limit: Int): Array[InternalRow] =
    JobDescription.step(session.sparkContext, "look up join keys")(
      shim.dataFrame(session, Limit(Literal(limit), Distinct(keys)))
        .queryExecution.executedPlan.executeCollect())

  /** The condition with its column names spelled as in the table. */
  private def spelled(condition: Expression): Expression = condition.transform {
    case a: AttributeReference => relation.attributeMap.get(a).fold(a)(r => a.withName(r.name))
  }

  private def attempt(sql: String)(body: => WorkloadFilter): WorkloadFilter =
    try body
    catch { case NonFatal(failure) => unused(sql, firstLine(failure)) }

  private def unused(sql: String, reason: String): WorkloadFilter =
    WorkloadFilter(sql, IndexFilter.Always, Some(reason))

  private def firstLine(failure: Throwable): String =
    Option(failure.getMessage).getOrElse(failure.toString).linesIterator.next()
}

object WorkloadFilters {

  /** The column that contains the keys on the other side of a join. */
  val Key = "_zorder_key"

  private val Scanned = "_zorder_scanned"

  /**
   * Join keys are not used if the other side has more distinct keys than `joinMaxKeys` times this
   * factor. A query applies the same limit to the number of rows on the other side.
   */
  private val RowsPerKey = 100

  private val Unproved = "the condition cannot be used to skip files"
}
