package io.pyzorder.skipping.files

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.PartitionDirectory
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{EvaluationSettings, ExpressionColumn, ReadSettings}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.skipping.predicate.{ConstantFileFilter, FileTest, FilterColumn, IndexFilter}
import io.pyzorder.skipping.predicate.{IndexedExpressions, JoinKeyFilter, KeyRanges, KeyValues}
import io.pyzorder.skipping.predicate.{ListedValuesFilter, PredicateRules, ZValueRangeFilter}
import io.pyzorder.storage.listing.ChangedFiles

/**
 * Removes from a listing each file that, according to its index entry, cannot contain a matching
 * row. A file without a valid entry is always kept.
 *
 * @param table      the table's name, used in messages
 * @param dataSchema the columns stored in the files, with the types that the scan reads
 * @param options    the relation's options
 * @param properties the table's properties
 * @param evaluated  the results of the plan's filters so far
 */
final class FilePruner private[skipping] (
    session: shim.SparkSession,
    table: String,
    dataSchema: StructType,
    options: Map[String, String],
    properties: Map[String, String],
    evaluated: EvaluatedPartitions) {

  /** Whether files of the table may be skipped at all. */
  def isEnabled: Boolean = ZOrderConf.skippingEnabled.get(session.sessionState.conf, properties)

  /**
   * Returns the outcome of skipping, and the partitions with only the files that must be opened.
   *
   * @param listed     the partitions
   * @param indexes    the newest snapshots of the folders that contain the files
   * @param predicates the predicates on the files' rows
   * @param unknown    further predicates, whose subqueries have not run yet
   * @param joins      the filters derived from the keys of joins above the scan
   * @param asked      see `examine`
   */
  def prune(
      listed: ListedPartitions,
      indexes: Seq[SnapshotRef],
      predicates: Seq[Expression],
      unknown: Seq[Expression],
      joins: Seq[JoinKeyFilter],
      asked: Boolean): (Seq[PartitionDirectory], SkippingOutcome) = {
    val start = System.nanoTime()
    val expressions = indexedExpressions(indexes)
    val filters = predicates.map(p => p -> PredicateRules(expressions.in(p)).mayBeTrue) ++
      expressions.implied(predicates).map(p => p -> PredicateRules(p).mayBeTrue)
    val own = PredicateRules.together(
      predicates.map(expressions.in),
      filters.map(_._2).foldLeft(IndexFilter.Always: IndexFilter)(IndexFilter.and))
    val filter = joins.map(_.filter).foldLeft(own)(IndexFilter.and)
    val enabled = isEnabled
    val snapshots = if (enabled && filter != IndexFilter.Always) load(indexes) else Nil
    val judges = judgesOf(snapshots, filter)
    val judged = evaluations(listed, judges)
    val withoutJoins =
      if (joins.isEmpty || own == IndexFilter.Always) judged.map(_ => None)
      else evaluations(listed, judgesOf(snapshots, own)).map(Some(_))
    val withoutSketches =
      if (!judges.exists(_.facts.useSketches)) judged
      else evaluations(listed, judgesOf(snapshots, filter, sketched = false))
    if (asked) forgetChanged(listed, indexes, judged, _.skipped)
    val counts = new SkippingCounts
    val kept = judged.indices.map(i =>
      judged(i).pruned(counts, withoutJoins(i), withoutSketches(i)))

    val notUsed = filters.collect { case (p, IndexFilter.Always) => p.sql } ++
      unknown.map(p => s"${p.sql} (its subquery runs later)")
    val evaluated = filters.collect {
      case (p, IndexFilter.And(_: ConstantFileFilter, _: ListedValuesFilter)) => p.sql
      case (p, _: ConstantFileFilter) => p.sql
    }
    val reasons =
      if (!enabled) Seq(s"${ZOrderConf.skippingEnabled.key} is false")
      else if (indexes.isEmpty) Seq("the table has no index")
      else if (predicates.isEmpty && unknown.isEmpty && joins.isEmpty)
        Seq("the query has no condition on the files' columns")
      else if (filter != IndexFilter.Always && judges.isEmpty) Seq("the index cannot be read")
      else {
        val changed = predicates.flatMap(expressions.unusable).distinct
        val bare = filter.columns.filterNot(c => judges.exists(_.knows(c))).map(_.sql(""))
        (if (notUsed.isEmpty) Nil else Seq(s"not usable: ${notUsed.mkString(", ")}")) ++
          (if (evaluated.isEmpty) Nil
           else Seq("usable only for files with a single value or a list of values: " +
             evaluated.mkString(", "))) ++
          (if (changed.isEmpty) Nil
           else Seq(s"indexed under other settings: ${changed.mkString(", ")}")) ++
          (if (bare.isEmpty) Nil else Seq(s"no statistics: ${bare.distinct.mkString(", ")}"))
      }
    val wide =
      if (reasons.isEmpty && own != IndexFilter.Always && counts.selectsAll) {
        val columns = own.columns.map(_.sql("")).distinct.mkString(" and ")
        Seq(s"no file is ruled out by the statistics of $columns")
      } else Nil
    val nanos = System.nanoTime() - start
    val isJudged = judges.nonEmpty || indexes.isEmpty
    (kept,
      counts.outcome(table, filter, joins, reasons ++ wide, nanos, isJudged).copy(
        asOf = listed.asOf))
  }

  /**
   * Returns the index's information about every file of a listing. This includes whether all of the
   * file's rows match, and the statistics of columns that the predicates do not reference. An index
   * that is too large for the driver is ignored. Unlike in `prune`, every indexed file is compared
   * with its state in the store, and `predicates` must contain every condition that filters the
   * rows.
   *
   * @param joins the filters derived from the keys of joins above the scan. A file that they rule
   *              out counts as skipped
   * @param asked if false, the store is not checked, so the files in the result may have changed
   *              since they were listed
   */
  def examine(
      listed: ListedPartitions,
      indexes: Seq[SnapshotRef],
      predicates: Seq[Expression],
      joins: Seq[JoinKeyFilter],
      asked: Boolean): IndexedSeq[ExaminedPartition] = {
    val snapshots = if (isEnabled) load(indexes.filterNot(isLarge)) else Nil
    val expressions = indexedExpressions(indexes)
    val judgement =
      PredicateRules(predicates.map(expressions.in) ++ expressions.implied(predicates))
    val judges =
      judgesOf(snapshots, joins.map(_.filter).foldLeft(judgement.mayBeTrue)(IndexFilter.and))
    val outcomes = judges.map(judge => judgement.bind(judge.facts))
    val judged = evaluations(listed, judges)
    if (asked) forgetChanged(listed, indexes, judged, _.indexed)
    judged.map(_.examined(outcomes))
  }

  /** Whether some index has the lists of values without which the filter keeps every file. */
  def hasListsFor(indexes: Seq[SnapshotRef], filter: IndexFilter): Boolean =
    !filter.needsLists ||
      judgesOf(load(indexes.filterNot(isLarge)), IndexFilter.Always).exists(judge =>
        filter.columns.flatMap(judge.facts(_)).exists(_.hasLists))

  /**
   * Whether each of the columns has a single value in at least half of the files of some index. In
   * a large index, only about `SampledFiles` files are examined.
   *
   * @param isDistinct whether one of the columns may instead have several values, if the index
   *                   lists them
   */
  def knowsMostGroups(
      indexes: Seq[SnapshotRef],
      columns: Seq[FilterColumn],
      isDistinct: Boolean): Boolean =
    judgesOf(load(indexes.filterNot(isLarge)), IndexFilter.Always).exists { judge =>
      val facts = columns.flatMap(judge.facts(_))
      val files = judge.question.numFiles
      val sample = 0 until files by math.max(1, files / FilePruner.SampledFiles)
      val listed = if (isDistinct) facts.filter(_.mostHaveLists) else Nil
      def isKnown(file: Int): Boolean = {
        val several = facts.filterNot(_.oneValue(file))
        several.isEmpty || several.size == 1 && listed.contains(several.head)
      }
      facts.length == columns.length &&
      sample.count(isKnown) * 2 >= math.max(1, sample.length)
    }

  /**
   * Ranges that contain all values of the column in the files of some indexes; None if such ranges
   * are not known. Files that have no index entry are ignored.
   *
   * @param limit the maximum number of ranges
   */
  def values(indexes: Seq[SnapshotRef], column: FilterColumn, limit: Int): Option[KeyValues] = {
    val judges = judgesOf(load(indexes.filterNot(isLarge)), IndexFilter.Always)
    val found = new KeyRanges(column.comparedType, limit)
    judges.foreach(judge =>
      judge.facts(column).fold(found.addUnknown()) { facts =>
        (0 until judge.question.numFiles).foreach(found.add(column, facts, _))
      })
    if (judges.isEmpty) None else found.result
  }

  /**
   * The settings under which expressions are evaluated; empty if the indexes contain no
   * expressions.
   */
  def evaluation(indexes: Seq[SnapshotRef]): String =
    if (indexes.exists(_.columns.exists(ExpressionColumn.matches)))
      EvaluationSettings.of(session.sessionState.conf)
    else ""

  /** The expressions for which the indexes have statistics. */
  def indexedExpressions(indexes: Seq[SnapshotRef]): IndexedExpressions =
    new IndexedExpressions(
      dataSchema, indexes.flatMap(_.columns), evaluation(indexes),
      session.sessionState.conf.sessionLocalTimeZone)

  /**
   * Marks files as unindexed if they have changed since they were listed. Checks only the files in
   * `checked`. Does not check any files if they were listed recently enough, either for this query
   * or for an index that covers all of them.
   */
  private def forgetChanged(
      listed: ListedPartitions,
      indexes: Seq[SnapshotRef],
      judged: Seq[PartitionEvaluation],
      checked: PartitionEvaluation => Iterator[FileStatus]): Unit = {
    val allows = (time: Long) => listed.staleness.allows(time)
    val isRecent = listed.isFresh || listed.asOf.exists(allows) ||
      listed.staleness.earliest == Long.MinValue ||
      indexes.nonEmpty && indexes.forall(_.coverage.exists(known => allows(known.listedAt)))
    if (!isRecent) {
      val files = judged.iterator.flatMap(checked)
      if (files.hasNext) {
        val changed = ChangedFiles.among(session.sessionState.newHadoopConf(), files)
        if (changed.nonEmpty) judged.foreach(_.forget(file => changed(file.getPath)))
      }
    }
  }

  private def evaluations(
      listed: ListedPartitions,
      judges: Array[FileEvaluator]): IndexedSeq[PartitionEvaluation] =
    listed.partitions.map(new PartitionEvaluation(_, listed.listing, judges, evaluated))

  private def load(indexes: Seq[SnapshotRef]): Seq[(SnapshotRef, IndexSnapshot)] =
    indexes.flatMap(ref => IndexStore.load(session, ref).map(ref -> _))

  /**
   * Whether the index is too large to load into the driver. If so, a Spark job finds the files to
   * skip, and the index is not used for anything else.
   */
  def isLarge(ref: SnapshotRef): Boolean =
    ref.length > ZOrderConf.indexDriverLimit.get(session.sessionState.conf, properties)

  private def judgesOf(
      snapshots: Seq[(SnapshotRef, IndexSnapshot)],
      filter: IndexFilter,
      sketched: Boolean = true): Array[FileEvaluator] = {
    lazy val settings = ReadSettings.of(session, options, dataSchema)
    lazy val reading = ColumnReading(
      dataSchema, session.sessionState.conf.caseSensitiveAnalysis, settings.temporal,
      evaluation(snapshots.map(_._1)), sketched)
    lazy val confs = session.sessionState.conf.getAllConfs
    snapshots.flatMap { case (ref, snapshot) =>
      val facts = new SnapshotStatistics(snapshot, reading)
      val whole = ZValueRangeFilter.added(filter, snapshot.columns)
      val question = EvaluatedPartitions.Question(
        ref.folder.root, ref.file, snapshot.numFiles, whole, reading, confs)
      def judge(test: FileTest, knows: FilterColumn => Boolean): FileEvaluator =
        new FileEvaluator(ref.folder, snapshot, settings, facts, question, test, knows)
      if (isLarge(ref)) IndexQuery(session, ref, whole, reading).map(judge(_, facts.has))
      else Some(judge(whole.bind(facts), facts(_).isDefined))
    }.toArray
  }
}

private object FilePruner {

  /** See knowsMostGroups. */
  private val SampledFiles = 1000
}
