package io.pyzorder.skipping.joins

import scala.collection.mutable
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
 * A scan that skips the files that contain none of the keys of joins above it. The broadcast sides
 * of these joins are children of this node, so they are executed before the scan. Adaptive
 * execution starts a stage only when all stages below it are done. Without adaptive execution, this
 * node itself waits for the broadcasts. The joins reuse the same broadcasts, so none is executed
 * twice.
 *
 * There are no deadlocks, because a scan waits only for broadcasts that are below it, and a plan is
 * a finite tree. Spark reuses a broadcast in place of another only if their trees are equal. If a
 * broadcast waited for itself through reuse, its tree would contain a tree equal to itself, which
 * is impossible. PruneByJoinKeys adds broadcasts to a scan before it has passed keys into them, and
 * then replaces each with its final form, but only if no scan in that form waits for keys.
 *
 * Two scans are equal only if their keys are equal. Spark therefore replaces an exchange above one
 * scan with an exchange above another only if both scans skip the same files.
 *
 * @param scan  the file scan, possibly below a node that reports what it skips
 * @param sides the broadcast sides
 * @param keys  the columns of the scan that must equal keys of these sides
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
   * The scan alone, restricted to the files that may contain one of the keys. The plans in `sides`
   * must already have been broadcast.
   *
   * @param joined the broadcasts of the joins in the scan's own stage
   */
  def withKeys(joined: Seq[AnyRef]): SparkPlan = {
    val found = filters(build => joined.exists(_ eq build.broadcast))
    if (found.isEmpty) scan else ScanWithKeysExec.mapIndex(scan)(_.withJoins(found))
  }

  /**
   * The same scan with other copies of the broadcast sides. Keys whose source has no copy are
   * dropped.
   */
  def movedTo(copies: BroadcastKeys => Option[BroadcastKeys]): SparkPlan = {
    val moved = keys.flatMap(wanted => copies(wanted.from).map(_ -> wanted.keys))
    if (moved.isEmpty) scan
    else {
      val node = ScanWithKeysExec.of(scan, moved)
      node.copyTagsFrom(this)
      node
    }
  }

  protected override def doExecute(): RDD[InternalRow] = {
    chooseFiles
    scan.execute()
  }

  protected override def doExecuteColumnar(): RDD[ColumnarBatch] = {
    chooseFiles
    scan.executeColumnar()
  }

  /**
   * Passes the keys to the scan in the plan, rather than to a copy, because the UI shows that
   * scan's metrics.
   */
  private lazy val chooseFiles: Unit =
    ScanWithKeysExec.indexOf(scan).foreach(_.addJoins(filters(!_.isStage)))

  /**
   * The filters derived from the keys of broadcast sides. The filters of a broadcast side may be
   * used only if its join sees the same key values as the scan. This is certain if the join uses
   * this broadcast, or if the broadcast side returns the same rows each time it is executed.
   * Without adaptive execution, Spark merges equal broadcasts in a plan into one.
   *
   * If a broadcast fails, the scan reads all files, and the join reports the failure.
   */
  private def filters(isJoins: BuildSide => Boolean): Seq[JoinKeyFilter] =
    keys.flatMap { wanted =>
      try {
        val executed = wanted.sides.map(sides).flatMap(BuildSide.unapply)
        if (executed.size == wanted.sides.size &&
          (wanted.from.isRepeatable || isJoins(executed.head)))
          wanted.from.filters(executed, wanted.keys)
        else Nil
      } catch {
        case NonFatal(failure) =>
          logDebug("No file is skipped by join keys", failure)
          Nil
      }
    }

  override def simpleString(maxFields: Int): String = s"$nodeName [${keys.mkString(", ")}]"

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[SparkPlan]): ScanWithKeysExec =
    copy(scan = newChildren.head, sides = newChildren.tail)
}

private[joins] object ScanWithKeysExec {

  /** The scan with its own copy of the file index, to which filters may be added later. */
  def apply(scan: SparkPlan, found: Seq[(BroadcastKeys, Seq[ScanKey])]): ScanWithKeysExec = {
    val node = of(mapIndex(scan)(_.withJoins(Nil)), found)
    node.copyTagsFrom(scan)
    node
  }

  private def of(scan: SparkPlan, found: Seq[(BroadcastKeys, Seq[ScanKey])]): ScanWithKeysExec = {
    val sides = mutable.ArrayBuffer.empty[SparkPlan]
    val keys = found.map { case (from, keys) =>
      ScanKeys(
        keys,
        from.sides.map { side =>
          if (!sides.exists(_.sameResult(side))) sides += side
          sides.indexWhere(_.sameResult(side))
        },
        from.values)(from)
    }
    ScanWithKeysExec(scan, sides.toSeq, keys)
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
   * Copies the scan with a changed file index. This does not use `transform`, which keeps the old
   * node if the new one equals it.
   */
  def mapIndex(scan: SparkPlan)(change: ZOrderFileIndex => ZOrderFileIndex): SparkPlan = {
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

/** A scan's column that must equal one of a join's keys, and the position of that key. */
private[joins] final case class ScanKey(column: Expression, ordinal: Int)

/**
 * The columns of a scan that must equal keys of the same source. The comparison of two instances
 * ignores the source's broadcast sides, because ScanWithKeysExec compares them as its children.
 *
 * @param sides  the positions of the source's broadcast sides
 * @param values how the source computes its keys from the rows of the sides
 */
private[joins] final case class ScanKeys(
    keys: Seq[ScanKey],
    sides: Seq[Int],
    values: BroadcastKeys.Values)(
    @transient val from: BroadcastKeys) {
  override def toString: String = keys.map(_.column.sql).mkString(", ")
}

/**
 * Replaces each ScanWithKeysExec in a new stage of adaptive execution with a scan that skips files.
 * By then, the stages below the new stage, including the broadcast sides, are done.
 */
object ApplyJoinKeys extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val joined = plan.collect { case join: BroadcastHashJoinExec => join.children }
      .flatten.collect { case BuildSide(build) => build.broadcast }
    plan.transform { case scan: ScanWithKeysExec => scan.withKeys(joined) }
  }
}
