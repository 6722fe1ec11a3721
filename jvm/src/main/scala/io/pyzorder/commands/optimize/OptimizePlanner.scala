package io.pyzorder.commands.optimize

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.advisor.RecordedLookups
import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable, TableFiles}
import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.collect.Collector
import io.pyzorder.index.model.ColumnStatistics
import io.pyzorder.layout.cells.FileBox
import io.pyzorder.layout.select.{IncrementalPlanner, KnownFiles, LayoutEstimate, LayoutVerdict}
import io.pyzorder.layout.select.{OpenedShare, PartitionFiles, PartitionGain, RewritePlan}
import io.pyzorder.storage.FileRef

/**
 * What an OPTIMIZE would do.
 *
 * @param verdict whether the plan as a whole would pay off
 * @param gains   what the plan would cost and save in each folder
 */
final case class OptimizeOutlook(
    plan: RewritePlan,
    verdict: LayoutVerdict,
    gains: Seq[PartitionGain])

/** Decides which files an OPTIMIZE rewrites, and whether the rewrite pays off. */
private[optimize] final class OptimizePlanner(context: OptimizeContext) {
  import context._

  /**
   * Plans the rewrite. Collects statistics for files that are not in the index. A partition whose
   * files an earlier OPTIMIZE has clustered by other columns keeps them if it is known that the
   * rewrite would not pay off there.
   */
  def plan(files: Seq[PartitionFiles]): RewritePlan = {
    val whole = plan(files, known)
    val vain =
      if (full || files.length == 1) Set.empty[String]
      else relaid(whole).collect {
        case (partition, bytes) if worth.get(partition).exists(_ < bytes) => partition
      }.toSet
    whole.copy(groups = whole.groups.filterNot(group => vain(group.folder)), unpaid = vain.size)
  }

  /**
   * The folders in which the plan mostly replaces files that were clustered by other columns, and
   * the total size of the files that it replaces there.
   */
  private def relaid(plan: RewritePlan): Map[String, Long] = {
    val clustered = plan.fresh.filter(isClustered).map(_.getPath).toSet
    def sizeOf(files: Seq[FileStatus]): Long = files.iterator.map(_.getLen).sum
    plan.groups.groupBy(_.folder).map { case (partition, groups) =>
      partition -> groups.flatMap(_.files)
    }.collect {
      case (partition, files)
          if 2 * sizeOf(files.filter(file => clustered(file.getPath))) > sizeOf(files) =>
        partition -> sizeOf(files)
    }
  }

  private def plan(files: Seq[PartitionFiles], known: => KnownFiles): RewritePlan =
    if (zOrderBy.isEmpty) RewritePlan.toCompact(files, targetSize)
    else if (full) RewritePlan.everything(files, targetSize)
    else IncrementalPlanner.of(known, settings, targetSize).choose(files)

  /** What OPTIMIZE would do if it used only the index. */
  def outlook(): OptimizeOutlook = {
    val files = list()
    judged(files, plan(files, indexed))
  }

  /** Judges whether the plan pays off, based only on the index. */
  def verdict(files: Seq[PartitionFiles], plan: RewritePlan): LayoutVerdict =
    judged(files, plan).verdict

  private def judged(files: Seq[PartitionFiles], plan: RewritePlan): OptimizeOutlook = {
    val every = files.flatMap(_.files)
    val number = every.zipWithIndex.toMap
    val groups = plan.groups.map(_.files.map(number))
    val other = relaid(plan)
    val (before, after) = LayoutEstimate.foreseen(
      indexed.types, indexed.boxes(every), groups.zip(plan.groups.map(_.leaves)),
      settings.curve == "linear")
    OptimizeOutlook(
      plan,
      LayoutVerdict.of(workOf(files, plan), before, after),
      PartitionGain.of(
        plan, groups.map(_.map(before)), after.takeRight(groups.length), names.nonEmpty,
        (partition, saved) =>
          worth.get(partition).filter(_ => other.contains(partition))
            .getOrElse(saved * lookupsIn(partition))))
  }

  /**
   * Judges whether the plan pays off, based on a sample. Only `verdict` decides whether the plan is
   * harmful, so that a DRY RUN and `checkHarm` agree.
   *
   * @param planned the files that the plan would write, as predicted from the sample
   */
  def sampledVerdict(
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      planned: Seq[FileBox]): LayoutVerdict = {
    val foreseen = verdict(files, plan)
    if (foreseen.isHarm) foreseen
    else {
      val (before, after) = boxes(files, plan, planned)
      val (now, next) = LayoutEstimate.pieces(known.types, before, after)
      LayoutVerdict.of(workOf(files, plan).copy(undoes = false), now, next)
    }
  }

  /** The current files, and the files after the plan has been carried out. */
  private def boxes(
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      planned: Seq[FileBox]): (Seq[FileBox], Seq[FileBox]) = {
    val every = files.flatMap(_.files)
    val replaced = plan.groups.flatMap(_.files).toSet
    (known.boxes(every), known.boxes(every.filterNot(replaced)) ++ planned)
  }

  /**
   * For each clustering column, the share of the files that a query on the column opens now, and
   * the share that it would open after the plan has been carried out.
   */
  def estimates(
      files: Seq[PartitionFiles],
      plan: RewritePlan,
      planned: Seq[FileBox]): Seq[(OpenedShare, OpenedShare)] = {
    val (before, after) = boxes(files, plan, planned)
    LayoutEstimate.of(known.types, before, after)
  }

  /** Throws ZORDER_SLOWER_LOOKUPS if the plan is harmful, unless FULL was specified. */
  def checkHarm(files: Seq[PartitionFiles], plan: RewritePlan): Unit = if (!full) {
    val foreseen = verdict(files, plan)
    if (foreseen.isHarm) throw ZOrderErrors.slowerLookups(table.name, foreseen.sentence)
  }

  /** A sentence for the user about a plan that does nothing, or that makes no file skippable. */
  def remark(files: Seq[PartitionFiles], plan: RewritePlan): Option[String] =
    LayoutVerdict.remark(workOf(files, plan))

  private def workOf(files: Seq[PartitionFiles], plan: RewritePlan): LayoutVerdict.Work = {
    val replaced = plan.groups.flatMap(_.files)
    LayoutVerdict.Work(
      replaced.length, replaced.map(_.getLen).sum,
      files.map(_.files.length).sum - replaced.length, plan.clustered.length, plan.unpaid,
      plan.groups.map(_.leaves).sum,
      plan.groups.map(_.folder).distinct.length, where.nonEmpty, replaced.exists(isClustered),
      zOrderBy.map(ResolvedTable.inSql), targetSize, lookups.map(_ => lookupsOf(plan)))
  }

  private lazy val lookups: Option[RecordedLookups] = RecordedLookups.of(session, table, zOrderBy)

  /** The number of lookups to expect in a folder. */
  private def lookupsIn(folder: String): Long =
    lookups.fold(LayoutVerdict.UnrecordedLookups)(_.in(folder))

  /** The average of the lookups to expect in the replaced files, weighted by their sizes. */
  private def lookupsOf(plan: RewritePlan): Long = {
    val sizes = plan.groups.map(group => group.folder -> group.files.map(_.getLen).sum.toDouble)
    val all = sizes.map(_._2).sum
    if (all == 0) 0L
    else math.round(sizes.map { case (folder, size) => lookupsIn(folder) * (size / all) }.sum)
  }

  /** Whether the file was clustered by any columns when it was written. */
  private def isClustered(file: FileStatus): Boolean = index.exists { entries =>
    val entry = entries.find(folder.relativize(file.getPath))
    entry >= 0 && entries.clusteredBy(entry).nonEmpty
  }

  private lazy val known: KnownFiles = knowing(collect)

  private lazy val indexed: KnownFiles = knowing(_ => Map.empty)

  /** A KnownFiles that calls `collect` to get the statistics of unindexed files. */
  private def knowing(
      collect: Seq[FileRef] => Map[String, Seq[ColumnStatistics]]): KnownFiles =
    new KnownFiles(folder, zOrderBy, index, collect)

  /**
   * Collects statistics for files that are not in the index, and returns them keyed by file path.
   */
  private def collect(files: Seq[FileRef]): Map[String, Seq[ColumnStatistics]] = {
    val can = zOrderBy.filter(c => statisticsColumns.contains(c) || expressionColumns.contains(c))
    Collector.collect(session, TableFiles.toIndex(session, table, files), can).map { entry =>
      entry.path ->
        zOrderBy.map(c => entry.statistics.getOrElse(c.name, ColumnStatistics.unknown))
    }.toMap
  }
}

private[pyzorder] object OptimizePlanner {

  /** What an OPTIMIZE that creates this layout would do. Does not read any rows. */
  def outlook(
      session: shim.SparkSession,
      table: ResolvedTable,
      layout: ChosenLayout): OptimizeOutlook =
    new OptimizePlanner(new OptimizeContext(session, table, None, layout, full = false)).outlook()

  /** Judges whether an OPTIMIZE with the table's default clustering columns would pay off. */
  def verdict(session: shim.SparkSession, table: ResolvedTable): LayoutVerdict =
    outlook(session, table, ChosenLayout(ClusteringColumns.default(session, table))).verdict
}
