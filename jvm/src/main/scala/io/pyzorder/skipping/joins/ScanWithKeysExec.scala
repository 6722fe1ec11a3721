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

import io.pyzorder.skipping.files.{FileRanges, FilteredScan, ZOrderFileIndex}
import io.pyzorder.skipping.plan.SkippingScanExec
import io.pyzorder.skipping.predicate.JoinKeyFilter

/**
 * A scan that skips the files that contain none of the keys of joins above it. The broadcast sides
 * of these joins are children of this node, so they are executed before the scan. Adaptive
 * execution starts a stage only when all stages below it are done, and needs only a placeholder for
 * a join in the scan's own stage (see OmitJoinedSides). Without adaptive execution, this node
 * itself waits for the broadcasts and observes the limit. The joins reuse the same broadcasts, or
 * the shuffles that they read (see ShuffledKeys), so nothing is executed twice.
 *
 * There are no deadlocks, because a scan waits only for broadcasts that are below it, and a plan is
 * a finite tree. Spark reuses a broadcast in place of another only if their trees are equal. If a
 * broadcast waited for itself through reuse, its tree would contain a tree equal to itself, which
 * is impossible. PruneByJoinKeys adds broadcasts to a scan before it has passed keys into them, and
 * then replaces each with its final form, but only if no scan in that form waits for keys. A limit
 * (see LimitWaits) has nothing below it that it could wait for.
 *
 * Two scans are equal only if their keys are equal. Spark therefore replaces an exchange above one
 * scan with an exchange above another only if both scans skip the same files.
 *
 * @param scan         the file scan, possibly below a node that reports what it skips
 * @param sides        the broadcast sides
 * @param restrictions what the keys of the sides say about the files of the scan
 */
private[joins] final case class ScanWithKeysExec(
    scan: SparkPlan,
    sides: Seq[SparkPlan],
    restrictions: ScanRestrictions)
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
   * The scan alone, restricted to the files that may contain one of the keys, and to the rows that
   * contain one of the selective keys of joins in later stages. If a join in the scan's own stage
   * has keys that a later join restricts, the scan drops rows by these keys, too. The plans in
   * `sides` must already have been broadcast.
   *
   * @param joined the broadcast sides of the joins in the scan's own stage
   */
  def withKeys(joined: Seq[BuildSide]): SparkPlan =
    withSides {
      case omitted: JoinedSideExec =>
        joined.map(_.side).find(_.sameResult(omitted.side)).getOrElse(omitted)
      case side => side
    }.withKnownKeys(joined.map(_.broadcast))

  private def withKnownKeys(joined: Seq[AnyRef]): SparkPlan = {
    def isJoined(build: BuildSide): Boolean = joined.exists(_ eq build.broadcast)
    val (ofRows, ofFiles) = restrictions.keys.partition(key =>
      (CheapKeys.isSelective(key.from) || key.from.restrictions.nonEmpty) &&
        !(key.sides.head +: key.sidesOfRestrictions).forall(built(_).exists(isJoined)))
    val early = filters(ofRows, isJoined)
    val found = filters(ofFiles, isJoined) ++ early
    val ranges = fileRanges
    if (found.isEmpty && ranges.isEmpty) scan
    else EarlyRowFilter(
      ScanWithKeysExec.mapIndex(scan)(_.withJoins(found).withRanges(ranges)), early)
  }

  /**
   * The same scan with other copies of the broadcast sides. Keys whose source has no copy are
   * dropped.
   */
  def movedTo(copies: BroadcastKeys => Option[BroadcastKeys]): SparkPlan = {
    val moved = restrictions.keys.flatMap(key => copies(key.from).map(_ -> key.keys))
    if (moved.isEmpty) scan
    else {
      val node = ScanWithKeysExec.of(scan, moved)
      node.copyTagsFrom(this)
      node
    }
  }

  /**
   * The same scan without what depends on some sides, or the scan alone if nothing remains. A key
   * remains without the restrictions by these sides.
   *
   * @param dropped some of this node's sides. They are compared by identity, because generated code
   *                makes copies of the same side differ
   * @param why     the reason, which is recorded for each column whose key is dropped
   */
  def without(dropped: Seq[SparkPlan], why: String): SparkPlan =
    if (dropped.isEmpty) this
    else {
      def remaining(keys: ScanKeys): Option[ScanKeys] =
        keys.without(position => dropped.exists(_ eq sides(position)))
      for (files <- files; keys <- restrictions.keys if remaining(keys).isEmpty; key <- keys.keys)
        NotAwaited.add(files, key.column, why)
      val kept = restrictions.only(remaining, Nil)
      val used = kept.sides.sorted
      val node =
        if (kept.isEmpty) scan
        else copy(sides = used.map(sides), restrictions = kept.moved(used.indexOf(_)))
      node.copyTagsFrom(this)
      node
    }

  /** The same scan, with changed sides that have the same rows. */
  def withSides(change: SparkPlan => SparkPlan): ScanWithKeysExec = {
    val node = copy(sides = sides.map(change))
    node.copyTagsFrom(this)
    node
  }

  /** The same scan, with another copy of a broadcast side. */
  def withSide(before: SparkPlan, after: SparkPlan): ScanWithKeysExec =
    if (!sides.exists(_.sameResult(before))) this
    else withSides(side => if (side.sameResult(before)) after else side)

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
  private lazy val chooseFiles: Unit = {
    inTime match {
      case keyed: ScanWithKeysExec =>
        val found = keyed.filters(keyed.restrictions.keys, !_.isStage)
        ScanWithKeysExec.indexOf(scan).foreach(_.addFilters(found, keyed.fileRanges))
      case _ =>
    }
    hasKeys = true
  }

  /** The scan without the keys that do not become known within the limit (see LimitWaits). */
  private def inTime: SparkPlan = {
    val awaited = sides.collect { case side: AwaitedSideExec => side }
    awaited.foreach(_.start()) // one after the other, the waits would add up
    val late = awaited.filterNot(_.isInTime)
    without(late, NotAwaited.late(late.flatMap(_.millis).headOption.getOrElse(0L)))
  }

  @volatile private var hasKeys: Boolean = false

  /** Whether the scan has got its keys, which happens only without adaptive execution. */
  def isDone: Boolean = hasKeys

  /**
   * The filters derived from the keys of broadcast sides. The filters of a broadcast side may be
   * used only if its join sees the same key values as the scan. This is certain if the join uses
   * this broadcast, or if the broadcast side returns the same rows each time it is executed.
   * Without adaptive execution, Spark merges equal broadcasts in a plan into one.
   *
   * If a broadcast fails, the scan reads all files, and the join reports the failure.
   */
  private def filters(of: Seq[ScanKeys], isJoins: BuildSide => Boolean): Seq[JoinKeyFilter] =
    of.flatMap { wanted =>
      unlessItFails {
        val executed = wanted.sides.flatMap(built)
        if (executed.size == wanted.sides.size && areWorthCollecting(wanted, executed.head) &&
          (wanted.from.isRepeatable || isJoins(executed.head)))
          wanted.from.filters(executed, wanted.keys)
        else Nil
      }
    }

  private def built(position: Int): Option[BuildSide] = sides(position) match {
    case AwaitedSideExec(side, _) => BuildSide.unapply(side)
    case side => BuildSide.unapply(side)
  }

  private def areWorthCollecting(wanted: ScanKeys, executed: BuildSide): Boolean =
    executed.finalRowCount.exists { rows =>
      ScanWithKeysExec.filtered(scan).exists(
        CheapKeys.areWorthCollecting(wanted.from, rows, _, wanted.keys.map(_.column)))
    }

  /**
   * The filters derived from the files of other scans. If these files cannot be listed, there are
   * no filters. The other scans may never execute; if they do, they report the failure.
   */
  private def fileRanges: Seq[FileRanges] =
    ScanWithKeysExec.indexOf(scan).toSeq.flatMap { index =>
      unlessItFails(restrictions.fileRanges(index.plan, filters(_, _ => false)))
    }

  private def unlessItFails[T](derive: => Seq[T]): Seq[T] =
    try derive
    catch {
      case NonFatal(failure) =>
        logDebug("No file is skipped by join keys", failure)
        Nil
    }

  /** The file scan itself. */
  def files: Option[FileSourceScanExec] = scan match {
    case SkippingScanExec(files: FileSourceScanExec) => Some(files)
    case files: FileSourceScanExec => Some(files)
    case _ => None
  }

  override def simpleString(maxFields: Int): String =
    s"$nodeName [${restrictions.columns.map(_.sql).distinct.mkString(", ")}]"

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
        from.sides.map(position(sides, _)),
        from.values)(from)
    }
    ScanWithKeysExec(scan, sides.toSeq, ScanRestrictions(keys, Nil))
  }

  /**
   * The scan, possibly with keys, whose column must also have a value in files of the sources. It
   * waits for the broadcasts that restrict these files.
   */
  def withRanges(
      scan: SparkPlan,
      column: Expression,
      sources: Seq[KeyOrigins.Origin],
      limit: Int): ScanWithKeysExec = {
    val node = scan match {
      case keyed: ScanWithKeysExec => keyed
      case other => apply(other, Nil)
    }
    val sides = mutable.ArrayBuffer(node.sides: _*)
    val found = sources.map { source =>
      val positions = source.keyed.toSeq.flatMap { keyed =>
        keyed.restrictions.sides.map(i => i -> position(sides, keyed.sides(i)))
      }.toMap
      ScanRanges.Source(source.column, source.restrictions.moved(positions))(source.of)
    }
    val restrictions = node.restrictions.withRanges(ScanRanges(column, found, limit))
    val used = restrictions.sides.sorted
    val restricted = node.copy(
      sides = used.map(sides), restrictions = restrictions.moved(i => used.indexOf(i)))
    restricted.copyTagsFrom(node)
    restricted
  }

  /** The position of the side in the list. Appends it if the list contains no equal one. */
  private def position(sides: mutable.ArrayBuffer[SparkPlan], side: SparkPlan): Int = {
    if (!sides.exists(_.sameResult(side))) sides += side
    sides.indexWhere(_.sameResult(side))
  }

  /** Matches a scan that has a skipping index. */
  object Index {
    def unapply(scan: SparkPlan): Option[ZOrderFileIndex] = indexOf(scan)
  }

  /** The indexed scan with its own filters. */
  private def filtered(scan: SparkPlan): Option[FilteredScan] = scan match {
    case SkippingScanExec(files) => filtered(files)
    case files: FileSourceScanExec => indexOf(files).map(KeyOrigins.scanOf(_, files))
    case _ => None
  }

  def indexOf(scan: SparkPlan): Option[ZOrderFileIndex] = scan match {
    case keyed: ScanWithKeysExec => indexOf(keyed.scan)
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

/**
 * Replaces each ScanWithKeysExec in a new stage of adaptive execution with a scan that skips files.
 * By then, the stages below the new stage, including the broadcast sides, are done.
 */
object ApplyJoinKeys extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan = {
    val joined = plan.collect { case join: BroadcastHashJoinExec => join.children }
      .flatten.collect { case BuildSide(build) => build }
    plan.transform { case scan: ScanWithKeysExec => scan.withKeys(joined) }
  }
}
