package io.pyzorder.metadataonly

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.types.StructType

import io.pyzorder.skipping.files.{ExaminedFile, ExaminedPartition, PruningResult}
import io.pyzorder.skipping.files.{ReportingFileIndex, SkippingOutcome}
import io.pyzorder.skipping.predicate.PredicateRules

/**
 * The file index of a scan that opens only the files that the operators above the scan need. These
 * operators either compute aggregates or apply a LIMIT, with or without ORDER BY. The index belongs
 * to one physical plan and is created during physical planning, so no optimizer rule ever sees it.
 * Two indexes are equal only if everything that their decisions depend on is equal.
 *
 * This index uses all filters in the plan, which IndexedScan collects. The filters that Spark
 * passes to `listFiles` are not enough, because Spark passes only the filters that a scan can use.
 */
abstract class PlanBoundFileIndex(scan: IndexedScan) extends ReportingFileIndex {

  /** The type of this index's decision about which of the listed files to open. */
  protected type Decision <: PlanBoundFileIndex.Decision

  protected def decide(): Decision

  /**
   * Two indexes of the same class are equal if their identities, wrapped indexes and filters are
   * equal.
   */
  protected def identity: Any

  private var shown: Option[(Long, Decision)] = None
  private var taken: Option[Decision] = None

  /**
   * The decision that the plan's execution uses. It is made on first use and then kept. The scan
   * and IndexAnswersExec therefore agree on which files are read.
   */
  private[pyzorder] final def take(): Decision = synchronized {
    taken.getOrElse {
      val decision = scan.index.choosing(decide())(_.openedFiles)
      taken = Some(decision)
      decision
    }
  }

  /** For display only: the decision if it has been made, or else a preview (see ShownNanos). */
  private[pyzorder] final def preview(): Decision = synchronized {
    val now = System.nanoTime()
    taken.orElse(shown.collect { case (at, d) if now - at < PlanBoundFileIndex.ShownNanos => d })
      .getOrElse {
        val decision = decide()
        shown = Some((now, decision))
        decision
      }
  }

  /**
   * The listed files, with their index entries.
   *
   * @param asked whether to check in the store that the indexed files are unchanged
   */
  protected final def examined(asked: Boolean = true): IndexedSeq[ExaminedPartition] =
    scan.index.examine(scan.partitionFilters, scan.dataFilters, asked)
      .map(partition => if (scan.takes(partition.values)) partition else partition.unknown)

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = take().opened

  override def outcome(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): SkippingOutcome = {
    val decision = preview()
    def open(verdict: PruningResult): Int =
      decision.files.count(f => f._2 && f._1.verdict == verdict)
    val opened = decision.openedFiles
    SkippingOutcome(
      scan.index.table,
      selected = open(PruningResult.Selected),
      skipped = decision.skipped - decision.answered,
      skippedByJoins = 0,
      skippedBySketches = 0,
      unindexed = open(PruningResult.Unindexed),
      selectedBytes = opened.map(_.getLen).sum,
      totalBytes = decision.totalBytes,
      nanos = 0L,
      filter = PredicateRules(scan.judgedFilters).mayBeTrue,
      joins = Nil,
      reasons = decision.reasons,
      openedFiles = opened,
      answered = decision.answered,
      asOf = scan.index.asOf)
  }

  override def rootPaths: Seq[Path] = scan.index.rootPaths

  override def partitionSchema: StructType = scan.index.partitionSchema

  override def inputFiles: Array[String] = scan.index.inputFiles

  override def sizeInBytes: Long = scan.index.sizeInBytes

  override def metadataOpsTimeNs: Option[Long] = scan.index.metadataOpsTimeNs

  override def refresh(): Unit = scan.index.refresh()

  private def essence: Any =
    (getClass, scan.index, scan.normalizedFilters, identity)

  override def equals(other: Any): Boolean = other match {
    case that: PlanBoundFileIndex => that.essence == essence
    case _ => false
  }

  override def hashCode: Int = scan.index.hashCode

  override def toString: String = s"${getClass.getSimpleName}(${scan.index.wrapped})"
}

object PlanBoundFileIndex {

  /**
   * How long a preview is reused, in nanoseconds. EXPLAIN and the UI request a preview several
   * times for one plan.
   */
  private val ShownNanos = 1000000000L

  /**
   * @param partitions the files that are not skipped, each with a flag that is true if the file
   *                   must be opened
   */
  abstract class Decision(partitions: IndexedSeq[(ExaminedPartition, IndexedSeq[Boolean])]) {

    /**
     * The number of files that are not opened because the index contains the aggregates over all
     * their rows.
     */
    def answered: Int

    /** The reasons why the index does not provide the aggregates over some of the opened files. */
    def reasons: Seq[String]

    private[pyzorder] val files: Seq[(ExaminedFile, Boolean)] =
      partitions.flatMap { case (partition, open) => partition.files.zip(open) }

    /** The number of files that are not opened. */
    private[pyzorder] def skipped: Int =
      partitions.map(_._1.skipped.number).sum + files.count(!_._2)

    /** The total size of all files. */
    private[pyzorder] def totalBytes: Long =
      partitions.map(_._1.skipped.bytes).sum + files.map(_._1.file.fileStatus.getLen).sum

    private[pyzorder] def openedFiles: Seq[FileStatus] =
      files.collect { case (file, true) => file.file.fileStatus }

    private[pyzorder] def opened: Seq[PartitionDirectory] = partitions.map {
      case (partition, open) =>
        PartitionDirectory(
          partition.values, partition.files.zip(open).collect { case (f, true) => f.file })
    }
  }

  /**
   * A decision that leaves out files that are not needed, without taking any aggregates from the
   * index.
   */
  final class Needed(partitions: IndexedSeq[(ExaminedPartition, IndexedSeq[Boolean])])
      extends Decision(partitions) {
    override def answered: Int = 0
    override def reasons: Seq[String] = Nil
  }
}
