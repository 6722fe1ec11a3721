package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.execution.pyzorder.BuildSide
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.JoinKeyFilter

/**
 * A scan that skips the files without any of the keys of joins above it. The broadcast sides of
 * these joins are children of this node, so Spark executes them before the scan: adaptive execution
 * starts a stage only when all stages below it are done, and otherwise the node waits for them
 * itself. The joins reuse the same broadcasts, so none is executed twice.
 *
 * A scan never waits for something that waits for the scan. A plan is a finite tree, and what a
 * scan waits for is below it. Where Spark reuses a broadcast, it does so because both broadcasts
 * are equal trees. If a broadcast waited for itself, its tree would contain an equal tree.
 *
 * Two scans are equal only if their keys are. Spark therefore reuses an exchange above the scan
 * only where the other exchange would have skipped the same files.
 *
 * @param scan  the file scan, possibly below a node that reports what it skips
 * @param sides the broadcast sides
 * @param keys  for each side, the columns of the scan that must equal one of its keys
 */
private[joins] final case class ScanWithKeysExec(
    scan: SparkPlan,
    sides: Seq[SparkPlan],
    keys: Seq[ScanKeys])
    extends SparkPlan {

  override def nodeName: String = "ZOrderJoinKeys"

  override def children: Seq[SparkPlan] = scan +: sides

  override def output: Seq[Attribute] = scan.output

  override def outputPartitioning: Partitioning = scan.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = scan.outputOrdering

  override def supportsColumnar: Boolean = scan.supportsColumnar

  override def supportsRowBased: Boolean = scan.supportsRowBased

  override def vectorTypes: Option[Seq[String]] = scan.vectorTypes

  /**
   * The scan alone, with the files chosen by the keys. All sides must have been broadcast.
   *
   * @param joined the broadcasts of the joins in the scan's own stage
   */
  def withKeys(joined: Seq[AnyRef]): SparkPlan = {
    val found = filters(build => joined.exists(_ eq build.broadcast))
    if (found.isEmpty) scan else ScanWithKeysExec.mapIndex(scan)(_.withJoins(found))
  }

  protected override def doExecute(): RDD[InternalRow] = {
    chooseFiles
    scan.execute()
  }

  protected override def doExecuteColumnar(): RDD[ColumnarBatch] = {
    chooseFiles
    scan.executeColumnar()
  }

  /** Passes the keys to the scan that is in the plan, because the UI shows its metrics. */
  private lazy val chooseFiles: Unit =
    ScanWithKeysExec.indexOf(scan).foreach(_.addJoins(filters(!_.isStage)))

  /**
   * The filters that the keys imply. The join must have the same keys. It has, if the broadcast is
   * its own, or if executing a plan like this twice gives the same rows. Without adaptive
   * execution, equal broadcasts in a plan are a single one.
   *
   * If a broadcast fails, the scan reads all files, and the join reports the failure.
   */
  private def filters(isJoins: BuildSide => Boolean): Seq[JoinKeyFilter] =
    try
      for {
        (BuildSide(build), wanted) <- sides.zip(keys)
        if wanted.from.isRepeatable || isJoins(build)
        filter <- wanted.from.filters(build, wanted.keys)
      } yield filter
    catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        Nil
    }

  override def simpleString(maxFields: Int): String = s"$nodeName [${keys.mkString(", ")}]"

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): ScanWithKeysExec =
    copy(scan = newChildren.head, sides = newChildren.tail)
}

private[joins] object ScanWithKeysExec {

  /** The scan with a file index of its own, which its keys may change. */
  def apply(scan: SparkPlan, keys: Seq[ScanKeys]): ScanWithKeysExec = {
    val node = ScanWithKeysExec(mapIndex(scan)(_.withJoins(Nil)), keys.map(_.from.build.side), keys)
    node.copyTagsFrom(scan)
    node
  }

  def indexOf(scan: SparkPlan): Option[ZOrderFileIndex] = scan match {
    case SkippingScanExec(files) => indexOf(files)
    case files: FileSourceScanExec => files.relation.location match {
        case index: ZOrderFileIndex => Some(index)
        case _ => None
      }
    case _ => None
  }

  /**
   * Copies the scan. This does not use `transform`, which keeps the old node if the new one equals
   * it.
   */
  private def mapIndex(scan: SparkPlan)(change: ZOrderFileIndex => ZOrderFileIndex): SparkPlan = {
    val changed = scan match {
      case node @ SkippingScanExec(files) => node.copy(child = mapIndex(files)(change))
      case files: FileSourceScanExec =>
        val relation = files.relation
        val index = change(relation.location.asInstanceOf[ZOrderFileIndex])
        files.copy(relation = relation.copy(location = index)(relation.sparkSession))
    }
    changed.copyTagsFrom(scan)
    changed
  }
}

/** A column of a scan that must equal one of a join's keys, and the key's position. */
private[joins] final case class ScanKey(column: Expression, ordinal: Int)

/**
 * The columns of a scan that must equal the keys of one broadcast side. Equality ignores the side
 * itself, which ScanWithKeysExec compares as its child.
 */
private[joins] final case class ScanKeys(keys: Seq[ScanKey])(@transient val from: BroadcastKeys) {
  override def toString: String = keys.map(_.column.sql).mkString(", ")
}

/**
 * Replaces each scan of a new stage of adaptive execution by one that skips files. The stages below
 * the new one, among them the broadcast sides, are done.
 */
object ApplyJoinKeys extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val joined = plan.collect { case join: BroadcastHashJoinExec => join.children }
      .flatten.collect { case BuildSide(build) => build.broadcast }
    plan.transform { case scan: ScanWithKeysExec => scan.withKeys(joined) }
  }
}
