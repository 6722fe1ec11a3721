package io.pyzorder.index.store

import io.pyzorder.index.model.FileEntry
import io.pyzorder.storage.FileRef

/**
 * Says that a snapshot knows all data files of some folders: each file that a listing found there
 * has an entry, and so has each file that writers with pyzorder have added since.
 *
 * @param listedAt when the listing began, in milliseconds since the epoch
 * @param isWhole  whether the table's folder was listed with everything below it. If not, only
 *                 folders that hold a file with an entry are covered: other folders may not be
 *                 partitions of the table yet
 */
final case class Coverage(listedAt: Long, isWhole: Boolean)

object Coverage {

  /** The coverage of entries, if each of the listed files has one. */
  def of(listed: ListedTable, entries: Seq[FileEntry]): Option[Coverage] = {
    val known = entries.iterator.map(_.file).toSet
    if (listed.files.forall(known)) Some(Coverage(listed.at, listed.isWhole)) else None
  }
}

/**
 * Every data file of a table.
 *
 * @param at      when the listing began, in milliseconds since the epoch
 * @param isWhole as in Coverage
 */
final case class ListedTable(at: Long, isWhole: Boolean, files: Seq[FileRef])
