package io.pyzorder.skipping

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.ZOrderConf
import io.pyzorder.index.{IndexStore, ReadSettings, SnapshotRef}

/**
 * Takes the files out of a listing that their index entries prove to hold no matching row. Its one
 * condition for keeping a file: it has no valid entry, or the filter says "may match".
 *
 * @param table      for messages
 * @param dataSchema the columns stored in the files, as the scan reads them
 * @param options    the relation's options
 */
final class FilePruner(
    session: shim.SparkSession,
    table: String,
    dataSchema: StructType,
    options: Map[String, String]) {

  /**
   * The partitions with the files that must be opened, and what happened.
   *
   * @param indexes    the newest snapshots of the folders that the files lie under
   * @param predicates on the rows of the files; of those with subqueries nothing is used
   * @param joins      filters that the keys of joins above the scan give
   */
  def prune(
      partitions: Seq[PartitionDirectory],
      indexes: Seq[SnapshotRef],
      predicates: Seq[Expression],
      joins: Seq[JoinKeys]): (Seq[PartitionDirectory], SkippingOutcome) = {
    val start = System.nanoTime()
    val filters = predicates.map(p => p -> PredicateToIndexFilter(p))
    val own = filters.map(_._2).foldLeft(IndexFilter.Always: IndexFilter)(IndexFilter.and)
    val filter = joins.map(_.filter).foldLeft(own)(IndexFilter.and)
    val enabled = ZOrderConf.skippingEnabled.get(session.sessionState.conf)
    def judgesOf(filter: IndexFilter): Seq[FileJudge] =
      if (enabled && filter != IndexFilter.Always) indexes.flatMap(judge(_, filter)) else Nil
    val judges = judgesOf(filter)
    val withoutJoins = if (joins.isEmpty) judges else judgesOf(own)

    val counts = new FilePruner.Counts
    val changed = changedAmong(partitions.iterator.flatMap(_.files).map(_.fileStatus)
        .filter(file => verdictOf(judges, file) == Verdict.Skipped))
    // Spark 3.5 may list lazily (a Stream), which must not put off the counting.
    val kept = partitions.toIndexedSeq.map(partition =>
      partition.copy(files = partition.files.toIndexedSeq.filter { file =>
        val status = file.fileStatus
        val verdict =
          if (changed(status.getPath)) Verdict.Unindexed else verdictOf(judges, status)
        counts.add(status, verdict, verdictOf(withoutJoins, status))
        verdict != Verdict.Skipped
      }))

    val notUsed = filters.collect { case (p, IndexFilter.Always) => p.sql }
    val evaluated = filters.collect { case (p, _: OneValue) => p.sql }
    val reasons =
      if (!enabled) Seq(s"${ZOrderConf.skippingEnabled.key} is false")
      else if (indexes.isEmpty) Seq("there is no index")
      else if (predicates.isEmpty && joins.isEmpty)
        Seq("there is no predicate on the files' columns")
      else if (filter != IndexFilter.Always && judges.isEmpty) Seq("the index cannot be read")
      else {
        val unknown = filter.columns.filterNot(c => judges.exists(_.knows(c))).map(_.sql(""))
        (if (notUsed.isEmpty) Nil else Seq(s"not usable: ${notUsed.mkString(", ")}")) ++
          (if (evaluated.isEmpty) Nil
           else Seq(s"usable only on files of one value: ${evaluated.mkString(", ")}")) ++
          (if (unknown.isEmpty) Nil else Seq(s"no statistics: ${unknown.distinct.mkString(", ")}"))
      }
    val nanos = System.nanoTime() - start
    // Without a judge nothing was asked: a file that is merely opened is not called unindexed.
    val unindexed = judges.nonEmpty || indexes.isEmpty
    (kept, counts.outcome(table, filter, joins, reasons, nanos, unindexed))
  }

  /**
   * What the index says of every file of a listing: of all of its rows too, and of columns beside
   * those in the predicates. Unlike for `prune`, every file that the index knows is asked for in
   * the store again, and `predicates` must be all that the rows are filtered by.
   *
   * @param asked false: the store is not asked, and what is known may be of files since changed
   */
  def examine(
      partitions: Seq[PartitionDirectory],
      indexes: Seq[SnapshotRef],
      predicates: Seq[Expression],
      asked: Boolean): IndexedSeq[ExaminedPartition] = {
    val enabled = ZOrderConf.skippingEnabled.get(session.sessionState.conf)
    val judges =
      if (enabled) indexes.flatMap(judge(_, PredicateToIndexFilter(predicates))) else Nil
    val proof = PredicateToAllRowsFilter(predicates)
    val proofs = judges.map(judge => judge -> proof.bind(judge.facts))
    val changed = if (!asked) Set.empty[Path]
    else changedAmong(partitions.iterator.flatMap(_.files).map(_.fileStatus)
        .filter(file => verdictOf(judges, file) != Verdict.Unindexed))
    partitions.toIndexedSeq.map { (partition: PartitionDirectory) =>
      ExaminedPartition(
        partition.values,
        partition.files.toIndexedSeq.map { file =>
          val status = file.fileStatus
          val known =
            if (changed(status.getPath)) None
            else proofs.find(_._1.verdict(status) != Verdict.Unindexed)
          known match {
            case None => ExaminedFile(file, Verdict.Unindexed, None)
            case Some((judge, all)) =>
              val entry = judge.entry(status)
              ExaminedFile(file, judge.verdict(status),
                Some(new KnownFile(judge, entry, all.allMatch(entry))))
          }
        })
    }
  }

  private def changedAmong(files: Iterator[FileStatus]): Set[Path] =
    ChangedFiles.among(session.sessionState.newHadoopConf(), files)

  private def judge(ref: SnapshotRef, filter: IndexFilter): Option[FileJudge] =
    IndexStore.load(session, ref).map { snapshot =>
      val settings = ReadSettings.of(session, options)
      val caseSensitive = session.sessionState.conf.caseSensitiveAnalysis
      new FileJudge(ref.folder, snapshot, filter, settings,
        column =>
          snapshot.columnFor(dataSchema, column.path, caseSensitive)
            .filter(_.dataType == column.dataType))
    }

  /** A file below two indexed folders: the first one's valid entry counts. */
  private def verdictOf(judges: Seq[FileJudge], file: FileStatus): Verdict = {
    var verdict: Verdict = Verdict.Unindexed
    val each = judges.iterator
    while (verdict == Verdict.Unindexed && each.hasNext) verdict = each.next().verdict(file)
    verdict
  }
}

object FilePruner {

  /** Counts the three outcomes over a listing. */
  private final class Counts {
    private var selected, skipped, skippedByJoins, unindexed = 0
    private var selectedBytes, totalBytes = 0L
    private val opened = mutable.ArrayBuffer.empty[String]

    def add(file: FileStatus, verdict: Verdict, withoutJoins: => Verdict): Unit = {
      totalBytes += file.getLen
      verdict match {
        case Verdict.Skipped =>
          skipped += 1
          if (withoutJoins != Verdict.Skipped) skippedByJoins += 1
        case Verdict.Selected => selected += 1
        case Verdict.Unindexed => unindexed += 1
      }
      if (verdict != Verdict.Skipped) {
        selectedBytes += file.getLen
        opened += file.getPath.toString
      }
    }

    def outcome(
        table: String,
        filter: IndexFilter,
        joins: Seq[JoinKeys],
        reasons: Seq[String],
        nanos: Long,
        countUnindexed: Boolean): SkippingOutcome =
      SkippingOutcome(
        table,
        selected = if (countUnindexed) selected else selected + unindexed,
        skipped = skipped,
        skippedByJoins = skippedByJoins,
        unindexed = if (countUnindexed) unindexed else 0,
        selectedBytes = selectedBytes,
        totalBytes = totalBytes,
        nanos = nanos,
        filter = filter,
        joins = joins,
        reasons = reasons,
        opened = opened.toSeq)
  }
}
