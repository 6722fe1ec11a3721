package io.pyzorder.index.store

import io.pyzorder.index.model.FileEntry
import io.pyzorder.storage.FileRef

/**
 * Records that a snapshot covers all data files in some folders. Every file that a listing found
 * there has an entry, and so does every file that pyzorder's writers have added since the listing.
 * When the folder was listed, no streaming query had written to it (see TableFolder.streamLog).
 *
 * @param listedAt when the listing began, in milliseconds since the epoch
 * @param isWhole  whether the table's folder was listed with all of its subfolders. If not, only
 *                 folders that contain a file with an entry are covered, because other folders may
 *                 not be partitions of the table yet
 */
final case class Coverage(listedAt: Long, isWhole: Boolean)

object Coverage {

  /**
   * The coverage of a snapshot with these entries; None unless every listed file has an entry and
   * the listing is still valid.
   *
   * @param before the snapshot that the entries are about to replace
   */
  def of(
      listed: ListedTable,
      before: Option[SnapshotRef],
      entries: Seq[FileEntry]): Option[Coverage] = {
    lazy val known = entries.iterator.map(_.file).toSet
    if (listed.holds(before) && listed.files.forall(known)) {
      Some(Coverage(listed.at, listed.isWhole))
    } else None
  }
}

/**
 * A listing of all data files of a table.
 *
 * @param at      when the listing began, in milliseconds since the epoch
 * @param since   the index when the listing began; None if there was no index
 * @param isWhole see Coverage
 * @param isAlone whether no other writer could know of the table's folder yet
 * @param gone    the files that had an entry in version `since` but are not in the listing. Their
 *                entries must be removed. Otherwise, a folder that is no longer a partition of the
 *                table would count as covered because it has entries, although it was not listed
 */
final case class ListedTable(
    at: Long,
    since: Option[SnapshotRef],
    isWhole: Boolean,
    files: Seq[FileRef],
    gone: Set[FileRef] = Set.empty,
    isAlone: Boolean = false) {

  /**
   * Whether the entries of `snapshot` reflect all changes that pyzorder's writers have made since
   * the listing began. They may not if there was no index then, because a writer that found no
   * index in the meantime left no trace.
   */
  def holds(snapshot: Option[SnapshotRef]): Boolean =
    isAlone || since.exists(old =>
      snapshot.exists(ref =>
        ref.lineage == old.lineage && ref.incarnation == old.incarnation &&
          ref.coverableSince <= old.version && old.version <= ref.version))
}
