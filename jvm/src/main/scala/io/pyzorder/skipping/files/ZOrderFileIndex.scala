package io.pyzorder.skipping.files

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.model.ReadSettings
import io.pyzorder.index.store.SnapshotRef
import io.pyzorder.skipping.predicate.{FilterColumn, IndexFilter, JoinKeyFilter, KeyValues}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.listing.ChangedFiles

/**
 * Wraps the file index of a Parquet or ORC relation. Lists the files, taking the journal into
 * account, and then drops the files that, according to the skipping index, cannot contain a
 * matching row.
 *
 * Filters are passed with each call to `listFiles` and are never part of the object. This is
 * necessary because Spark merges and reuses scans whose relations are equal, and then lists the
 * files once for the filters of both scans. Two instances are equal if they wrap equal file
 * indexes, have the same folders and join keys, and saw the same states of the journal and the
 * skipping index during planning. Join keys are part of the object because Spark cannot pass them
 * as filters. They include the ranges of keys in the files of other scans.
 *
 * @param source      finds the files
 * @param plan        the state that all scans of the plan share
 * @param dataSchema  the columns stored in the files
 * @param table       the table's name, used in messages
 * @param properties  the table's properties; empty if the table is read by path
 * @param known       the filters derived from the keys of joins above the scan
 * @param knownRanges further filters, derived from the files of other scans of the plan
 * @param estimate    the estimated number of bytes that will be read, for use by the cost model;
 *                    None if everything will be read
 */
final class ZOrderFileIndex private (
    session: shim.SparkSession,
    source: FileSource,
    private[skipping] val plan: PlanState,
    dataSchema: StructType,
    val table: String,
    val properties: Map[String, String],
    known: Seq[JoinKeyFilter],
    knownRanges: Seq[FileRanges],
    val estimate: Option[Long],
    private val seen: TableState.Seen)
    extends ReportingFileIndex {

  /** Spark's own file index. */
  val wrapped: FileIndex = source.wrapped

  private def folders: Seq[TableFolder] = source.folders

  private val pruner =
    new FilePruner(session, table, ownSchema, source.options, properties, plan.evaluated)

  @volatile private var found: Seq[JoinKeyFilter] = known

  /** The filters derived from the keys of joins above the scan, once they are known. */
  def joins: Seq[JoinKeyFilter] = found

  @volatile private var foundRanges: Seq[FileRanges] = knownRanges

  /** The filters derived from the files of other scans. */
  private[skipping] def ranges: Seq[FileRanges] = foundRanges

  /**
   * The most recent request and its answer, which are kept only for display. Scans never use them.
   */
  private var last: Option[(ZOrderFileIndex.Request, ZOrderFileIndex.Answer)] = None

  override def rootPaths: Seq[Path] = wrapped.rootPaths

  override def partitionSchema: StructType = wrapped.partitionSchema

  override def inputFiles: Array[String] = {
    select(Nil)
    source.state.listing.files.inputFiles
  }

  override def sizeInBytes: Long = estimate.getOrElse(wrapped.sizeInBytes)

  override def metadataOpsTimeNs: Option[Long] = wrapped.metadataOpsTimeNs

  override def refresh(): Unit = synchronized {
    last = None
    wrapped.refresh()
  }

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = synchronized {
    last = None // a file may have been replaced since EXPLAIN showed it as skipped
    select(partitionFilters)
    pinRanges()
    choosing(answer(partitionFilters, dataFilters))(_.outcome.openedFiles).partitions
  }

  /**
   * The effect of skipping on the files that the filters select. Filters with subqueries are
   * ignored.
   */
  override def outcome(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): SkippingOutcome = {
    select(partitionFilters)
    if (isExecuting) plan.fix(source)
    answer(partitionFilters, dataFilters).outcome
  }

  /**
   * Like `outcome`, but for the cost model, which runs before any ranges are known. If Spark would
   * have to list the files, the files that the index covers are taken from the index instead.
   */
  def estimatedOutcome(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): SkippingOutcome = {
    val state = estimatedState(partitionFilters)
    pruner.prune(
      listed(state, partitionFilters, dataFilters), state.seen.indexes, dataFilters, Nil, joins,
      asked = false)._2
  }

  /**
   * Registers a scan of this index with these filters, or with stricter ones. When the first scan
   * of the plan executes, the partitions selected by any of the registered scans are listed
   * together.
   */
  def expect(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): Unit = {
    select(partitionFilters)
    plan.expect(source)(() => estimatedOutcome(partitionFilters, dataFilters).openedFiles)
  }

  private def select(partitionFilters: Seq[Expression]): Unit =
    plan.select(source, partitionFilters)

  /**
   * Returns every file of the partitions that the filters select, together with the index's current
   * information about it. Does not skip any files.
   *
   * @param partitionFilters the filters on partition columns only
   * @param dataFilters      all other filters on the rows
   * @param asked            if false, the store is not checked for changed files; if true, it is
   *                         checked unless the result is only displayed (see mayAsk)
   */
  def examine(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      asked: Boolean): IndexedSeq[ExaminedPartition] = {
    select(partitionFilters)
    if (isExecuting) plan.fix(source)
    examine(source.state, partitionFilters, dataFilters, ranges.flatMap(_.current), asked && mayAsk)
  }

  /** A scan of this index with these filters, which must not contain column ids. */
  private[skipping] def scan(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): FilteredScan =
    FilteredScan(
      this, partitionFilters, dataFilters, ZOrderFileIndex.Reading(source, dataSchema, properties))

  /** The state for estimates, including the partitions that the filters select. */
  private[files] def estimatedState(partitionFilters: Seq[Expression]): TableState = {
    select(partitionFilters)
    source.estimated
  }

  /** The files that a scan would read if it ignored `ranges`. Used for estimates. */
  private[files] def estimatedFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): IndexedSeq[ExaminedFile] =
    ZOrderFileIndex.read(examine(
        estimatedState(partitionFilters), partitionFilters, dataFilters, Nil, asked = false))

  /** The files that a scan of the executed plan would read if it ignored `ranges`. */
  private[files] def pinned(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): IndexedSeq[ExaminedFile] =
    choosing(ZOrderFileIndex.read(examine(partitionFilters, dataFilters, asked = true)))(
      _.map(_.file.fileStatus))

  private def examine(
      state: TableState,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      found: Seq[JoinKeyFilter],
      asked: Boolean): IndexedSeq[ExaminedPartition] =
    pruner.examine(
      listed(state, partitionFilters, Nil), state.seen.indexes, dataFilters, joins ++ found, asked)

  /** Pins the files from which this index's ranges are derived, and the ranges themselves. */
  private def pinRanges(): Unit = ranges.foreach(_.bounds.pin())

  /** Requests that all scans of the plan use the same list of this index's files. */
  private[skipping] def keepListing(): Unit = plan.keepListing(source)

  /** Whether a subquery that is planned separately may read the same files (see PlanState). */
  private[skipping] def isShared: Boolean = plan.isShared(source)

  /** Whether all scans of the plan are certain to use the list of files that is pinned now. */
  private[files] def keptListing: Boolean = source.keptListing

  /**
   * Whether to check the store for changed files. The store is checked for EXPLAIN and when a
   * query's files are chosen, but not when Spark describes the plan before or during the execution.
   */
  private def mayAsk: Boolean = !isExecuting || plan.isChoosing

  /**
   * Pins the state that the plan reads. Then chooses the files, or the values from the index, that
   * an execution of the plan uses. If the state was determined earlier and no scan uses it yet, the
   * chosen files are checked. If one of them has been deleted or changed, the table is listed again
   * and the choice is repeated.
   */
  def choosing[T](choose: => T)(opened: T => Seq[FileStatus]): T = plan.fixed(source) {
    val choice = choose
    if (source.state.asOf.isDefined && plan.mayListAnew(source) &&
      source.haveChanged(opened(choice))) {
      plan.fixAnew(source)
      choose
    } else choice
  }

  /**
   * Whether the plan is being executed. At the start of an execution, before any scan runs, Spark
   * describes the plan, and the description includes the skipping outcome. The files are therefore
   * listed at this point, once for the description and for all scans. By then, the whole logical
   * plan has been optimized, so the partitions that its scans select are known.
   */
  private def isExecuting: Boolean =
    session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY) != null

  /**
   * When the files were last verified. None if they have just been verified, or if Spark's own
   * index lists them.
   */
  def asOf: Option[Long] = source.state.asOf

  /** Whether all of these files are unchanged in the store, or were verified recently enough. */
  def areUnchanged(files: Seq[FileStatus]): Boolean = asOf.isDefined ||
    ChangedFiles.among(session.sessionState.newHadoopConf(), files.iterator).isEmpty

  /** The same index with a different size for the cost model. */
  def withEstimate(bytes: Long): ZOrderFileIndex = copy(estimate = Some(bytes))

  /**
   * Like this index, but also skips the files that do not contain any of the join keys in `more`.
   */
  def withJoins(more: Seq[JoinKeyFilter]): ZOrderFileIndex = copy(joins = joins ++ more)

  /** Like this index, but also skips the files without a value in each of these ranges. */
  private[skipping] def withRanges(more: Seq[FileRanges]): ZOrderFileIndex =
    copy(ranges = ranges ++ more)

  /** Like this index, but without any filters that are derived from joins. */
  private[files] def withoutFilters: ZOrderFileIndex = copy(joins = Nil, ranges = Nil)

  /** Like this index, but without the ranges that were added last. */
  private[files] def withoutLastRanges: ZOrderFileIndex = copy(ranges = ranges.init)

  /** The same index for another plan, into which scans of this index's plan have been merged. */
  private[skipping] def in(other: PlanState): ZOrderFileIndex =
    copy(source = other.source(source.unfixed), plan = other)

  private def copy(
      source: FileSource = source,
      plan: PlanState = plan,
      joins: Seq[JoinKeyFilter] = joins,
      ranges: Seq[FileRanges] = ranges,
      estimate: Option[Long] = estimate): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, source, plan, dataSchema, table, properties, joins, ranges, estimate, seen)

  /** The columns that join keys restrict. */
  def restricted: Set[FilterColumn] =
    joins.flatMap(_.filter.columns).toSet ++ ranges.flatMap(_.columns)

  /**
   * Adds filters to an index that belongs to one scan of a physical plan, before that scan lists
   * its files. File indexes that were equal may be unequal afterwards, so Spark must no longer
   * compare them.
   */
  private[skipping] def addFilters(
      moreJoins: Seq[JoinKeyFilter],
      moreRanges: Seq[FileRanges]): Unit = synchronized {
    found = found ++ moreJoins
    foundRanges = foundRanges ++ moreRanges
    last = None
  }

  /** Whether some of the files may have been indexed when the query was planned. */
  def wasIndexed: Boolean = seen.indexes.nonEmpty

  /** Like `maySkip`, but without a request to the store. */
  private[skipping] def couldSkip: Boolean = pruner.isEnabled && wasIndexed

  /**
   * Whether files skipped by the keys of joins may save more time than finding these keys takes.
   * Opening a few small files takes less time.
   */
  private[skipping] def isWorthKeys: Boolean = couldSkip &&
    (numFiles > ZOrderFileIndex.FewFiles || sizeInBytes > ZOrderFileIndex.FewBytes)

  /** The number of files that were indexed when the query was planned. */
  private[files] def numFiles: Long = seen.indexes.map(_.numFiles.toLong).sum

  /** Whether skipping is enabled and some of the files may be indexed. */
  def maySkip: Boolean = pruner.isEnabled && indexes.nonEmpty

  /** Whether the index may also be used for aggregates and LIMIT, in addition to skipping files. */
  def mayAnswer: Boolean = maySkip && !indexes.exists(pruner.isLarge)

  /** Whether the index has the lists of values without which the filter keeps every file. */
  def hasListsFor(filter: IndexFilter): Boolean = pruner.hasListsFor(indexes, filter)

  /** Whether the index knows the groups in most of the indexed files; see FilePruner. */
  def knowsMostGroups(columns: Seq[FilterColumn], isDistinct: Boolean): Boolean =
    pruner.knowsMostGroups(indexes, columns, isDistinct)

  /** Ranges that contain all values of the column in the indexed files; see FilePruner. */
  def values(column: FilterColumn, limit: Int): Option[KeyValues] =
    pruner.values(indexes, column, limit)

  /**
   * The filter, with an IndexedValue in place of each expression that has statistics in the index.
   */
  def withIndexedExpressions(filter: Expression): Expression =
    pruner.indexedExpressions(indexes).in(filter)

  /**
   * Like `withIndexedExpressions`, but uses the indexes that planning found and sends no request to
   * the store.
   */
  private[skipping] def withPlannedExpressions(key: Expression): Expression =
    pruner.indexedExpressions(seen.indexes).in(key)

  /** The indexes of the pinned state or, if no state is pinned, those that planning found. */
  private def indexes: Seq[SnapshotRef] = source.known.indexes

  private def answer(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ZOrderFileIndex.Answer = synchronized {
    val now = source.seen
    val request = ZOrderFileIndex.Request(
      partitionFilters.filterNot(FilterColumn.hasSubquery),
      dataFilters,
      joins ++ ranges.flatMap(_.current),
      now,
      source.fixed,
      ReadSettings.of(session, source.options, dataSchema),
      pruner.evaluation(now.indexes),
      pruner.isEnabled)
    last.collect { case (`request`, answer) => answer }.getOrElse {
      val answer = ask(request)
      last = Some(request -> answer)
      answer
    }
  }

  private def ask(request: ZOrderFileIndex.Request): ZOrderFileIndex.Answer = {
    val (unknown, known) = request.dataFilters.partition(FilterColumn.hasSubquery)
    val state = source.state
    val (partitions, outcome) = pruner.prune(
      listed(state, request.partitionFilters, known), state.seen.indexes, known, unknown,
      request.joins, mayAsk)
    ZOrderFileIndex.Answer(partitions, outcome)
  }

  private def listed(
      state: TableState,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ListedPartitions = {
    val files = state.listing.files
    ListedPartitions(
      files, files.listFiles(partitionFilters, dataFilters).toIndexedSeq, plan.isFresh(state),
      state.asOf, state.staleness)
  }

  /**
   * The columns that are read from the files. This excludes columns of the partition schema, whose
   * values come from folder names even if the files have columns with the same names.
   */
  private def ownSchema: StructType = {
    val same = session.sessionState.conf.resolver
    StructType(dataSchema.filterNot(f => partitionSchema.exists(p => same(p.name, f.name))))
  }

  override def equals(other: Any): Boolean = other match {
    case that: ZOrderFileIndex =>
      (that eq this) || that.wrapped == wrapped && that.folders == folders && that.seen == seen &&
      that.joins == joins && that.ranges == ranges
    case _ => false
  }

  override def hashCode: Int = 31 * wrapped.hashCode + joins.hashCode

  override def toString: String = s"ZOrderFileIndex($wrapped)"
}

object ZOrderFileIndex {

  /** A table of this many files and bytes is too small for join keys (see isWorthKeys). */
  private val FewFiles = 3
  private val FewBytes = 1L << 20

  /**
   * Everything that determines which files are read, except the filters and the state of the files.
   */
  private[files] final case class Reading(
      source: FileSource,
      dataSchema: StructType,
      properties: Map[String, String])

  private def read(partitions: IndexedSeq[ExaminedPartition]): IndexedSeq[ExaminedFile] =
    partitions.flatMap(_.files)

  private final case class Request(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      joins: Seq[JoinKeyFilter],
      seen: TableState.Seen,
      fixed: Option[TableState],
      settings: ReadSettings,
      evaluation: String,
      enabled: Boolean)

  private final case class Answer(
      partitions: Seq[PartitionDirectory],
      outcome: SkippingOutcome)

  /** The file index of a relation in a plan, without a size estimate. */
  private[skipping] def apply(
      session: shim.SparkSession,
      source: FileSource,
      plan: PlanState,
      dataSchema: StructType,
      table: String,
      properties: Map[String, String]): ZOrderFileIndex = {
    val own = plan.source(source)
    new ZOrderFileIndex(
      session, own, plan, dataSchema, table, properties, Nil, Nil, None, own.planned)
  }
}
