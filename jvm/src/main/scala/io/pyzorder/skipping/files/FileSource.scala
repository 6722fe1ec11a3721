package io.pyzorder.skipping.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, FileIndex, InMemoryFileIndex}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.{Staleness, ZOrderConf}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.publish.journal.{Journal, JournalState}
import io.pyzorder.publish.reading.{JournaledListing, Listing, SelectedPartitions}
import io.pyzorder.storage.{FileVersion, TableFolder}
import io.pyzorder.storage.listing.ChangedFiles
import io.pyzorder.storage.metadata.ListedMetadata

/**
 * Finds the files for the scans of a plan. These are the files that Spark's own file index would
 * list, with corrections from the journal.
 *
 * @param wrapped         Spark's own file index
 * @param options         the relation's options
 * @param partitionSchema the relation's partition columns
 * @param findTables      finds the tables to which the files may belong, and their metadata
 * @param table           the table, if the catalog tracks its partitions; distinguishes tables that
 *                        share a folder but have different partitions
 * @param properties      the table's properties; empty if the table is read by path
 */
private[skipping] final class FileSource(
    private val session: shim.SparkSession,
    val wrapped: FileIndex,
    val options: Map[String, String],
    val partitionSchema: StructType,
    findTables: Configuration => Seq[ListedMetadata],
    val table: Option[TableIdentifier],
    properties: Map[String, String]) {

  @volatile private var found: Option[Seq[ListedMetadata]] = None

  /** Made once, because copying all settings takes longer than looking up a small table. */
  private lazy val hadoopConf: Configuration = session.sessionState.newHadoopConf()

  /** The folders of the tables to which the files may belong. */
  def folders: Seq[TableFolder] = tables.map(_.folder)

  /**
   * The tables to which the files may belong. The store is searched on first use, because a source
   * is not used if the plan already has an equivalent one.
   */
  private def tables: Seq[ListedMetadata] = found.getOrElse(search())

  private def search(): Seq[ListedMetadata] = {
    val tables = findTables(hadoopConf)
    found = Some(tables)
    tables
  }

  /**
   * Searches for the folders again, at most once, if more folders may exist by now. A plan may be
   * older than the first OPTIMIZE of a table, and that OPTIMIZE may be moving files when the plan
   * is executed.
   */
  private[files] def findFoldersAgain(): Unit =
    if (!hasSearchedAgain && !isJustPlanned && !wrapped.rootPaths.forall(isInFoundTable)) {
      hasSearchedAgain = true
      search()
    }

  /** Whether the outermost table to which the path may belong has been found. */
  private def isInFoundTable(path: Path): Boolean =
    folders.exists(_.root == TableFolder.upwards(path).last)

  private var hasSearchedAgain = false

  /** The state that the plan reads, once PlanState has pinned it. */
  @volatile private[skipping] var fixed: Option[TableState] = None

  /**
   * Whether a scan uses the pinned state. If so, the state must not be replaced. Set by PlanState.
   */
  private[files] var isSettled: Boolean = false

  private var keepsListing = false

  /**
   * Requests that all scans of the plan use the same list of files, even if there is no journal.
   * Otherwise, scans that start after a refresh of Spark's own index would see new files. Has no
   * effect if the state is already pinned (see keptListing).
   */
  private[files] def keepListing(): Unit = keepsListing = true

  /** Whether the state is pinned and its list of files can no longer change. */
  private[files] def keptListing: Boolean = fixed.exists(_.listing.files ne wrapped)

  /** The partitions that the plan's scans are known to select. */
  private var selected = SelectedPartitions.none(partitionSchema)

  /**
   * Makes sure that the state includes the partitions that these filters select. This method is
   * called for all scans of a plan while the plan is optimized. When the state is pinned, it
   * therefore includes all partitions that the scans need. Later rules usually make filters
   * stricter. If filters nevertheless select further partitions, this method lists them.
   */
  private[files] def select(partitionFilters: Seq[Expression]): Unit =
    if (!selected.contain(partitionFilters)) {
      selected = selected.or(partitionFilters)
      fixed = fixed.map { state =>
        val listing = JournaledListing.extended(
          session, state.listing, wrapped, options, selected, folders, state.seen.indexes,
          state.staleness)
        if (listing eq state.listing) state
        else new TableState(state.seen, listing, state.staleness)
      }
    }

  /** A copy of this source for another plan. The state of the copy is not pinned. */
  def unfixed: FileSource = {
    val copy =
      new FileSource(session, wrapped, options, partitionSchema, findTables, table, properties)
    copy.selected = selected
    copy
  }

  def readsLike(other: FileSource): Boolean =
    (wrapped eq other.wrapped) || (wrapped.getClass == other.wrapped.getClass &&
      wrapped == other.wrapped && wrapped.rootPaths == other.wrapped.rootPaths &&
      table == other.table && options == other.options &&
      partitionSchema == other.partitionSchema && folders == other.folders &&
      FileSource.knownFiles(wrapped) == FileSource.knownFiles(other.wrapped))

  /**
   * The journal and index of the pinned state or, if no state is pinned, the current journal and
   * index.
   */
  def seen: TableState.Seen = fixed.fold(now)(_.seen)

  /** The journal and index at the time of planning. They are read once for all scans. */
  lazy val planned: TableState.Seen = {
    plannedIn = executionId
    TableState.Seen.of(hadoopConf, tables)
  }

  /** The execution that has planned the query; None if it was planned before any execution. */
  @volatile private var plannedIn: Option[String] = None

  private def executionId: Option[String] =
    Option(session.sparkContext.getLocalProperty(SQLExecution.EXECUTION_ID_KEY))

  /**
   * Whether the current execution has planned the query. If so, the journal and index have been
   * read since it started, and need not be read again. Usually, Spark plans a query when it is
   * executed for the first time.
   */
  private def isJustPlanned: Boolean = plannedIn.isDefined && plannedIn == executionId

  /** The current journal and index. */
  private def now: TableState.Seen =
    TableState.Seen.of(hadoopConf, folders.map(ListedMetadata.newest(hadoopConf, _)))

  /** Like `seen`, but if no state is pinned, the journal and index at the time of planning. */
  def known: TableState.Seen = fixed.fold(planned)(_.seen)

  /** The pinned state or, if no state is pinned, the current state. */
  def state: TableState = fixed.getOrElse(current())

  /** The current state of the files, or an earlier state that the settings allow. */
  def current(): TableState =
    listedOnce(state(allowed, if (isJustPlanned) planned else now))

  private def allowed: Staleness = {
    val staleness = Staleness.of(session.sessionState.conf, properties)
    if (staleness.remembers && readsSingleFiles) Staleness.none else staleness
  }

  /**
   * Whether a root path is a file. An index that covers the folder then does not say what the root
   * paths contain: if an OPTIMIZE has moved the files, a new listing has nothing at these paths,
   * and only the old listing says which rows to read.
   */
  private lazy val readsSingleFiles: Boolean = wrapped match {
    case listed: InMemoryFileIndex =>
      val roots = listed.rootPaths.toSet
      listed.allFiles().exists(file => roots(file.getPath))
    case _ => false
  }

  /**
   * The state to use for estimates. This is the pinned state, if there is one. Otherwise, if Spark
   * would have to list the files, the files that the index covers are taken from the index, even if
   * the index is old. In all other cases, this is the current state. The state is determined only
   * once for each set of selected partitions, because several rules estimate how much a plan reads.
   */
  def estimated: TableState = fixed.getOrElse {
    estimate.collect { case (partitions, state) if partitions == selected => state }.getOrElse {
      val made = wrapped match {
        case _: CatalogFileIndex => state(Staleness.unbounded, planned)
        case _ => listedOnce(state(allowed, planned))
      }
      estimate = Some((selected, made))
      made
    }
  }

  /** Whether any of these files has changed or disappeared. */
  private[files] def haveChanged(files: Seq[FileStatus]): Boolean =
    ChangedFiles.anyOf(hadoopConf, files)

  private var estimate: Option[(SelectedPartitions, TableState)] = None

  /** The state of the files according to a new listing. */
  def listedAnew(): TableState = {
    if (!readsSingleFiles) wrapped.refresh()
    JournaledListing.forget(wrapped)
    listedOnce(state(Staleness.none, now))
  }

  /**
   * The same state, but with the selected partitions of a CatalogFileIndex already listed.
   * Otherwise, the CatalogFileIndex would list them for each scan, and scans of one query could see
   * different files. Also keeps the list of Spark's own index if keepListing has been called.
   */
  private def listedOnce(state: TableState): TableState = state.listing.files match {
    case catalog: CatalogFileIndex =>
      val files = catalog.filterPartitions(selected.anyOf.toSeq)
      new TableState(state.seen, state.listing.copy(files = files), state.staleness)
    case listed: InMemoryFileIndex if keepsListing && (listed eq wrapped) =>
      JournaledListing.kept(session, listed, options, selected).fold(state)(
        new TableState(state.seen, _, state.staleness))
    case _ => state
  }

  private def state(staleness: Staleness, seen: TableState.Seen): TableState = {
    val listing =
      if (!ZOrderConf.journalOverlay.get(session.sessionState.conf))
        Listing(wrapped, isFresh = false, asOf = None)
      else JournaledListing.current(
        session, wrapped, options, selected, folders, seen.states, seen.indexes, staleness)
    new TableState(seen, listing, staleness)
  }
}

private[skipping] object FileSource {

  /**
   * The files that Spark has already listed. They matter because, without a journal, a DataFrame
   * reads the files that existed when it was created. Spark's own comparison of file indexes
   * ignores the listed files.
   */
  private def knownFiles(wrapped: FileIndex): Set[FileVersion] = wrapped match {
    case listed: InMemoryFileIndex => listed.allFiles().map(FileVersion.of).toSet
    case _ => Set.empty
  }

  /**
   * Pins the states of a plan's sources. The states agree, because they are taken from one listing
   * of all the files. The files of sources without a journal are listed by Spark.
   */
  def listTogether(sources: Seq[FileSource]): Unit = {
    val listed = sources.filter(_.fixed.exists(_.listing.asOf.isDefined))
    if (listed.nonEmpty) {
      val session = listed.head.session
      val seen = listed.map(_.now)
      val listings = JournaledListing.together(
        session, listed.map(one => (one.wrapped, one.options, one.selected, one.folders)))
      listed.zip(seen).zip(listings).foreach { case ((one, now), listing) =>
        listing.foreach(made => one.fixed = Some(new TableState(now, made, Staleness.none)))
      }
    }
  }
}

/**
 * A table's files at one moment, and the index snapshots that describe them.
 *
 * @param listing   the list of the files; using it accesses the store again only if there is no
 *                  journal
 * @param staleness how old the listing and the index may be
 */
private[skipping] final class TableState(
    val seen: TableState.Seen,
    val listing: Listing,
    val staleness: Staleness) {

  /** When the files were last verified. None if they were just verified, or if Spark lists them. */
  def asOf: Option[Long] = listing.asOf.filter(_ => staleness.remembers && !listing.isFresh)

  /** True if the store has just been listed and no scan has used that listing yet. */
  private[files] var isNew: Boolean = listing.isFresh
}

private[skipping] object TableState {

  /**
   * The journals and indexes of the folders at one moment.
   *
   * @param journals the tokens of the journals
   * @param states   the journals themselves
   */
  final case class Seen(journals: Seq[String], indexes: Seq[SnapshotRef])(
      val states: Seq[JournalState])

  object Seen {

    /** @param conf not evaluated if `listed` is empty, as it is for tables without pyzorder */
    def of(conf: => Configuration, listed: Seq[ListedMetadata]): Seen =
      if (listed.isEmpty) Seen(Nil, Nil)(Nil)
      else {
        val states = listed.map(Journal.read(conf, _))
        Seen(states.map(_.token), listed.flatMap(IndexStore.latest(conf, _)))(states)
      }
  }
}
