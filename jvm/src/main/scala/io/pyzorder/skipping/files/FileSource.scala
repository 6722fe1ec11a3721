package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.{Staleness, ZOrderConf}
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.publish.journal.Journal
import io.pyzorder.publish.reading.{JournaledListing, Listing}
import io.pyzorder.storage.TableFolder

/**
 * Finds the files for the scans of a plan, by viewing Spark's own file index through the journal.
 *
 * @param wrapped         Spark's own file index
 * @param options         the relation's options
 * @param partitionSchema the relation's partition columns
 * @param folders         the table folders that may contain the files
 * @param table           the table, if the catalog tracks its partitions: two tables can share
 *                        their folders and have different partitions
 * @param properties      the table's properties; empty for a path
 */
private[skipping] final class FileSource(
    private val session: shim.SparkSession,
    val wrapped: FileIndex,
    val options: Map[String, String],
    val partitionSchema: StructType,
    val folders: Seq[TableFolder],
    val table: Option[TableIdentifier],
    properties: Map[String, String]) {

  /** The state that the plan reads, once PlanState has fixed it. */
  @volatile private[skipping] var fixed: Option[TableState] = None

  /** The same source for a plan that has not fixed its state. */
  def unfixed: FileSource =
    new FileSource(session, wrapped, options, partitionSchema, folders, table, properties)

  def readsLike(other: FileSource): Boolean =
    (wrapped eq other.wrapped) || (wrapped.getClass == other.wrapped.getClass &&
      wrapped == other.wrapped && wrapped.rootPaths == other.wrapped.rootPaths &&
      table == other.table && options == other.options &&
      partitionSchema == other.partitionSchema && folders == other.folders)

  /** The journal and index of the fixed state, or the current ones. */
  def seen: TableState.Seen = fixed.fold(TableState.Seen.now(session, folders))(_.seen)

  /** The fixed state, or the current one. */
  def state: TableState = fixed.getOrElse(current())

  /** The state of the files: the current one, or one as old as the settings allow. */
  def current(): TableState = state(Staleness.of(session.sessionState.conf, properties))

  /** The state of the files according to a new listing. */
  def listedAnew(): TableState = {
    JournaledListing.forget(wrapped)
    state(Staleness.none)
  }

  private def state(staleness: Staleness): TableState = {
    val seen = TableState.Seen.now(session, folders)
    val listing =
      if (!ZOrderConf.journalOverlay.get(session.sessionState.conf))
        Listing(wrapped, isFresh = false, asOf = None)
      else JournaledListing.current(
        session, wrapped, options, partitionSchema, folders, seen.indexes, staleness)
    new TableState(seen, listing, staleness)
  }
}

private[skipping] object FileSource {

  /**
   * Fixes sources of one plan by one listing of all their files, so that they show one state. Those
   * without a journal are left to Spark.
   */
  def listTogether(sources: Seq[FileSource]): Unit = {
    val listed = sources.filter(_.fixed.exists(_.listing.asOf.isDefined))
    if (listed.nonEmpty) {
      val session = listed.head.session
      val seen = listed.map(one => TableState.Seen.now(session, one.folders))
      val listings = JournaledListing.together(
        session, listed.map(one => (one.wrapped, one.options, one.partitionSchema)),
        listed.flatMap(_.folders).distinct)
      listed.zip(seen).zip(listings).foreach { case ((one, now), listing) =>
        listing.foreach(made => one.fixed = Some(new TableState(now, made, Staleness.none)))
      }
    }
  }
}

/**
 * A table's files at one moment, and the index snapshots that describe them.
 *
 * @param listing   does not access the store again, unless there is no journal
 * @param staleness how old the listing and the index may be
 */
private[skipping] final class TableState(
    val seen: TableState.Seen,
    val listing: Listing,
    val staleness: Staleness) {

  /** When the files were known to be these; None: just now, or as plain Spark knows them. */
  def asOf: Option[Long] = listing.asOf.filter(_ => staleness.remembers && !listing.isFresh)

  private var isNew = listing.isFresh

  /**
   * Whether the store has just been listed. This is true for the first scan at most. A later scan
   * must check whether each file that it would skip is still the listed one.
   */
  def takeFresh(): Boolean = synchronized {
    val fresh = isNew
    isNew = false
    fresh
  }
}

private[skipping] object TableState {

  /** The journals and indexes of the folders at one moment. */
  final case class Seen(journals: Seq[String], indexes: Seq[SnapshotRef])

  object Seen {
    def now(session: shim.SparkSession, folders: Seq[TableFolder]): Seen =
      if (folders.isEmpty) Seen(Nil, Nil) // the most common case, at no cost
      else {
        val conf = session.sessionState.newHadoopConf()
        Seen(
          folders.map(Journal.read(conf, _).token),
          folders.flatMap(IndexStore.latest(conf, _)))
      }
  }
}
