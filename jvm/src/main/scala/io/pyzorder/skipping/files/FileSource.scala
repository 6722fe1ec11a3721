package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.execution.datasources.FileIndex
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.store.{IndexStore, SnapshotRef}
import io.pyzorder.publish.journal.Journal
import io.pyzorder.publish.reading.{JournaledListing, Listing}
import io.pyzorder.storage.TableFolder

/**
 * Where scans of a plan find their files: Spark's own file index, seen through the journal.
 *
 * @param wrapped         Spark's own file index
 * @param options         the relation's options
 * @param partitionSchema the relation's partition columns
 * @param folders         the table folders that the files can lie under
 * @param table           the table, if the catalog knows its partitions: folders of two tables can be
 *                        the same and be other partitions
 */
private[skipping] final class FileSource(
    session: shim.SparkSession,
    val wrapped: FileIndex,
    val options: Map[String, String],
    val partitionSchema: StructType,
    val folders: Seq[TableFolder],
    val table: Option[TableIdentifier]) {

  /** The state that the plan reads, once it is fixed by PlanState. */
  @volatile private[skipping] var fixed: Option[TableState] = None

  /** The same source, of a plan that has fixed nothing. */
  def unfixed: FileSource =
    new FileSource(session, wrapped, options, partitionSchema, folders, table)

  def readsLike(other: FileSource): Boolean =
    (wrapped eq other.wrapped) || (wrapped.getClass == other.wrapped.getClass &&
      wrapped == other.wrapped && wrapped.rootPaths == other.wrapped.rootPaths &&
      table == other.table && options == other.options &&
      partitionSchema == other.partitionSchema && folders == other.folders)

  /** What journal and index are: the fixed state's, or those of this moment. */
  def seen: TableState.Seen = fixed.fold(TableState.Seen.now(session, folders))(_.seen)

  /** The fixed state, or what the files are at this moment. */
  def state: TableState = fixed.getOrElse(current())

  /** What the files are at this moment. */
  def current(): TableState = {
    val seen = TableState.Seen.now(session, folders)
    new TableState(seen, listing(seen.indexes))
  }

  /** Lets the next `current` list anew. */
  def forget(): Unit = JournaledListing.forget(wrapped)

  private def listing(indexes: Seq[SnapshotRef]): Listing =
    if (!ZOrderConf.journalOverlay.get(session.sessionState.conf)) Listing(wrapped, isFresh = false)
    else JournaledListing.current(session, wrapped, options, partitionSchema, folders, indexes)
}

/**
 * A table's files at one moment, and what the index said of them.
 *
 * @param listing asks the store no more, unless there is no journal
 */
private[skipping] final class TableState(val seen: TableState.Seen, val listing: Listing) {

  private var isNew = listing.isFresh

  /**
   * Whether the store has just been asked for the files: true for the first scan at most. A later
   * one has to ask whether a file that it would skip is still the one that was listed.
   */
  def takeFresh(): Boolean = synchronized {
    val fresh = isNew
    isNew = false
    fresh
  }
}

private[skipping] object TableState {

  /** What journal and index of the folders are at one moment. */
  final case class Seen(journals: Seq[String], indexes: Seq[SnapshotRef])

  object Seen {
    def now(session: shim.SparkSession, folders: Seq[TableFolder]): Seen =
      if (folders.isEmpty) Seen(Nil, Nil) // what most queries find, before anything costs time
      else {
        val conf = session.sessionState.newHadoopConf()
        Seen(
          folders.map(Journal.read(conf, _).token),
          folders.flatMap(IndexStore.latest(conf, _)))
      }
  }
}
