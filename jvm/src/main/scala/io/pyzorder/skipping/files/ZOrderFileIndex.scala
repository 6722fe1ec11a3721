package io.pyzorder.skipping.files

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.model.ReadSettings
import io.pyzorder.index.store.SnapshotRef
import io.pyzorder.skipping.predicate.JoinKeyFilter
import io.pyzorder.storage.TableFolder

/**
 * Wraps the file index of a Parquet or ORC relation: lists through the journal, then drops the
 * files that the index proves to hold no matching row.
 *
 * The filters come with each call of `listFiles` and are never part of the object: Spark merges
 * and reuses scans whose relations are equal, and then lists once for the filters of both. Equal
 * are two with an equal wrapped index, the same states of journal and index, and equal join keys:
 * those are part of the object, because Spark knows of no filter there that it could pass.
 *
 * @param source     where the files are found
 * @param plan       what all scans of the plan share
 * @param dataSchema the columns stored in the files
 * @param table      for messages
 * @param properties the table's; empty for a path
 * @param joins      filters that the keys of joins above the scan give, once they are known
 * @param estimate   bytes that will be read, for the cost model only; None: all
 */
final class ZOrderFileIndex private (
    session: shim.SparkSession,
    source: FileSource,
    private[skipping] val plan: PlanState,
    dataSchema: StructType,
    val table: String,
    properties: Map[String, String],
    val joins: Seq[JoinKeyFilter],
    val estimate: Option[Long],
    private val seen: TableState.Seen)
    extends ReportingFileIndex {

  /** Spark's own file index. */
  val wrapped: FileIndex = source.wrapped

  private def folders: Seq[TableFolder] = source.folders

  private val pruner = new FilePruner(session, table, ownSchema, source.options, properties)

  /** The last listing, for showing it: what is read is listed anew. */
  private var last: Option[(ZOrderFileIndex.Request, ZOrderFileIndex.Answer)] = None

  override def rootPaths: Seq[Path] = wrapped.rootPaths

  override def partitionSchema: StructType = wrapped.partitionSchema

  override def inputFiles: Array[String] = source.state.listing.files.inputFiles

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
    fix()
    answer(partitionFilters, dataFilters).partitions
  }

  /** What skipping does to the files that the filters select, those with subqueries aside. */
  override def outcome(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): SkippingOutcome =
    answer(partitionFilters, dataFilters).outcome

  /**
   * Every file of the partitions that the filters select, none skipped, and what the index says of
   * it at this moment.
   *
   * @param partitionFilters on the partition columns alone
   * @param dataFilters      all others that the rows are filtered by
   * @param asked            false: without asking the store whether the files are as they were
   */
  def examine(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      asked: Boolean): IndexedSeq[ExaminedPartition] = {
    val now = source.state
    pruner.examine(listed(now, partitionFilters, Nil), now.seen.indexes, dataFilters, asked)
  }

  /** Fixes what the plan reads of the table, when a scan or an answer of the index executes. */
  def fix(): Unit = plan.fix(source)

  /** Whether all the files are in the store as the listing says. */
  def areUnchanged(files: Seq[FileStatus]): Boolean =
    ChangedFiles.among(session.sessionState.newHadoopConf(), files.iterator).isEmpty

  /** The same index, telling the cost model another size. */
  def withEstimate(bytes: Long): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, source, plan, dataSchema, table, properties, joins, Some(bytes), seen)

  /** The same index for a scan below joins that use no row but those of files with these keys. */
  def withJoins(more: Seq[JoinKeyFilter]): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, source, plan, dataSchema, table, properties, joins ++ more, estimate, seen)

  /** The same index, for a plan that another plan's scans have become a part of. */
  private[skipping] def in(other: PlanState): ZOrderFileIndex = {
    val own = other.source(source.unfixed)
    new ZOrderFileIndex(
      session, own, other, dataSchema, table, properties, joins, estimate, seen)
  }

  /** Whether some of the files may have been in an index when the query was planned. */
  def wasIndexed: Boolean = seen.indexes.nonEmpty

  /** Whether files may be skipped, and some of them be in an index, now. */
  def maySkip: Boolean = pruner.isEnabled && indexes.nonEmpty

  /** Whether that index can be asked for more than which files to skip. */
  def mayAnswer: Boolean = maySkip && !indexes.exists(pruner.isLarge)

  private def indexes: Seq[SnapshotRef] = source.seen.indexes

  private def answer(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ZOrderFileIndex.Answer = synchronized {
    val isFixed = source.fixed.isDefined
    val request = ZOrderFileIndex.Request(
      partitionFilters.filterNot(hasSubquery),
      dataFilters,
      source.seen,
      isFixed,
      ReadSettings.of(session, source.options, dataSchema),
      pruner.isEnabled)
    last.collect { case (`request`, answer) => answer }.getOrElse {
      val answer = ask(request)
      last = Some(request -> answer)
      answer
    }
  }

  private def ask(request: ZOrderFileIndex.Request): ZOrderFileIndex.Answer = {
    val (unknown, known) = request.dataFilters.partition(hasSubquery)
    val state = source.state
    val (partitions, outcome) = pruner.prune(
      listed(state, request.partitionFilters, known), state.seen.indexes, known, unknown, joins)
    ZOrderFileIndex.Answer(partitions, outcome)
  }

  private def listed(
      state: TableState,
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ListedPartitions = {
    val files = state.listing.files
    ListedPartitions(
      files, files.listFiles(partitionFilters, dataFilters).toIndexedSeq, state.takeFresh())
  }

  /** A column of both schemas has the folder's value, whatever the files hold. */
  private def ownSchema: StructType = {
    val same = session.sessionState.conf.resolver
    StructType(dataSchema.filterNot(f => partitionSchema.exists(p => same(p.name, f.name))))
  }

  private def hasSubquery(filter: Expression): Boolean =
    filter.exists(_.isInstanceOf[PlanExpression[_]])

  override def equals(other: Any): Boolean = other match {
    case that: ZOrderFileIndex =>
      that.wrapped == wrapped && that.folders == folders && that.seen == seen &&
      that.joins == joins
    case _ => false
  }

  override def hashCode: Int = 31 * wrapped.hashCode + joins.hashCode

  override def toString: String = s"ZOrderFileIndex($wrapped)"
}

object ZOrderFileIndex {

  private final case class Request(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      seen: TableState.Seen,
      isFixed: Boolean,
      settings: ReadSettings,
      enabled: Boolean)

  private final case class Answer(
      partitions: Seq[PartitionDirectory],
      outcome: SkippingOutcome)

  /** The index of a relation in a plan, which has no estimate yet. */
  private[skipping] def apply(
      session: shim.SparkSession,
      source: FileSource,
      plan: PlanState,
      dataSchema: StructType,
      table: String,
      properties: Map[String, String]): ZOrderFileIndex = {
    val own = plan.source(source)
    new ZOrderFileIndex(
      session, own, plan, dataSchema, table, properties, Nil, None,
      TableState.Seen.now(session, own.folders))
  }
}
