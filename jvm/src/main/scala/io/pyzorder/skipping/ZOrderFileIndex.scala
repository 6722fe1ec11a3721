package io.pyzorder.skipping

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.{Expression, PlanExpression}
import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.ZOrderConf
import io.pyzorder.index.{IndexStore, ReadSettings, SnapshotRef}
import io.pyzorder.publish.{Journal, JournaledListing, Listing, TableFolder}

/**
 * Wraps the file index of a Parquet or ORC relation: lists through the journal, then drops the
 * files that the index proves to hold no matching row.
 *
 * The filters come with each call of `listFiles` and are never part of the object: Spark merges
 * and reuses scans whose relations are equal, and then lists once for the filters of both. Equal
 * are two with an equal wrapped index, the same states of journal and index, and equal join keys:
 * those are part of the object, because Spark knows of no filter there that it could pass.
 *
 * @param wrapped    Spark's own file index
 * @param options    the relation's options
 * @param dataSchema the columns stored in the files
 * @param table      for messages
 * @param properties the table's; empty for a path
 * @param folders    the table folders that the relation's files can lie under
 * @param joins      filters that the keys of joins above the scan give, once they are known
 * @param estimate   bytes that will be read, for the cost model only; None: all
 */
final class ZOrderFileIndex private (
    session: shim.SparkSession,
    val wrapped: FileIndex,
    options: Map[String, String],
    dataSchema: StructType,
    val table: String,
    properties: Map[String, String],
    private val folders: Seq[TableFolder],
    val joins: Seq[JoinKeys],
    val estimate: Option[Long],
    private val seen: ZOrderFileIndex.State)
    extends ExplainedFileIndex {

  private val pruner = new FilePruner(session, table, ownSchema, options, properties)

  /** The last listing, for showing it: what is read is listed anew. */
  private var last: Option[(ZOrderFileIndex.Request, ZOrderFileIndex.Answer)] = None

  override def rootPaths: Seq[Path] = wrapped.rootPaths

  override def partitionSchema: StructType = wrapped.partitionSchema

  override def inputFiles: Array[String] = listing(indexes, Nil).files.inputFiles

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
    val now = indexes
    pruner.examine(listed(now, partitionFilters, Nil), now, dataFilters, asked)
  }

  /** Whether all the files are in the store as the listing says. */
  def areUnchanged(files: Seq[FileStatus]): Boolean =
    ChangedFiles.among(session.sessionState.newHadoopConf(), files.iterator).isEmpty

  /** The same index, telling the cost model another size. */
  def withEstimate(bytes: Long): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, wrapped, options, dataSchema, table, properties, folders, joins, Some(bytes), seen)

  /** The same index for a scan below joins that use no row but those of files with these keys. */
  def withJoins(more: Seq[JoinKeys]): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, wrapped, options, dataSchema, table, properties, folders, joins ++ more,
      estimate, seen)

  /** Whether some of the files may have been in an index when the query was planned. */
  def wasIndexed: Boolean = seen.indexes.nonEmpty

  /** Whether files may be skipped, and some of them be in an index, now. */
  def maySkip: Boolean = pruner.isEnabled && indexes.nonEmpty

  /** Whether that index can be asked for more than which files to skip. */
  def mayAnswer: Boolean = maySkip && !indexes.exists(pruner.isLarge)

  private def indexes: Seq[SnapshotRef] = ZOrderFileIndex.State.of(session, folders).indexes

  private def answer(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ZOrderFileIndex.Answer = synchronized {
    val state = ZOrderFileIndex.State.of(session, folders)
    val request = ZOrderFileIndex.Request(
      partitionFilters.filterNot(hasSubquery),
      dataFilters,
      state,
      ReadSettings.of(session, options, dataSchema),
      pruner.isEnabled)
    last.collect { case (`request`, answer) => answer }.getOrElse {
      val answer = ask(request)
      last = Some(request -> answer)
      answer
    }
  }

  private def ask(request: ZOrderFileIndex.Request): ZOrderFileIndex.Answer = {
    val (unknown, known) = request.dataFilters.partition(hasSubquery)
    val (partitions, outcome) = pruner.prune(
      listed(request.state.indexes, request.partitionFilters, known), request.state.indexes, known,
      unknown, joins)
    ZOrderFileIndex.Answer(partitions, outcome)
  }

  private def listed(
      indexes: Seq[SnapshotRef],
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): ListedPartitions = {
    val Listing(files, isFresh) = listing(indexes, partitionFilters)
    ListedPartitions(files, files.listFiles(partitionFilters, dataFilters).toIndexedSeq, isFresh)
  }

  private def listing(indexes: Seq[SnapshotRef], partitionFilters: Seq[Expression]): Listing =
    if (!ZOrderConf.journalOverlay.get(session.sessionState.conf)) Listing(wrapped, isFresh = false)
    else JournaledListing.current(
      session, wrapped, options, partitionSchema, folders, indexes, partitionFilters)

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

  /** What journal and index of the folders are at one moment. */
  private[skipping] final case class State(journals: Seq[String], indexes: Seq[SnapshotRef])

  private object State {
    def of(session: shim.SparkSession, folders: Seq[TableFolder]): State =
      if (folders.isEmpty) State(Nil, Nil) // what most queries find, before anything costs time
      else {
        val conf = session.sessionState.newHadoopConf()
        State(
          folders.map(Journal.read(conf, _).token),
          folders.flatMap(IndexStore.latest(conf, _)))
      }
  }

  private final case class Request(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression],
      state: State,
      settings: ReadSettings,
      enabled: Boolean)

  private final case class Answer(
      partitions: Seq[PartitionDirectory],
      outcome: SkippingOutcome)

  /** The index that wraps `wrapped`, which has no estimate yet. */
  def apply(
      session: shim.SparkSession,
      wrapped: FileIndex,
      options: Map[String, String],
      dataSchema: StructType,
      table: String,
      properties: Map[String, String],
      folders: Seq[TableFolder]): ZOrderFileIndex =
    new ZOrderFileIndex(
      session, wrapped, options, dataSchema, table, properties, folders, Nil, None,
      State.of(session, folders))
}
