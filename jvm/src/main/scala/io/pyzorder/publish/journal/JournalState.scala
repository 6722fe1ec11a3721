package io.pyzorder.publish.journal

import org.apache.hadoop.fs.{FileStatus, FileSystem}

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * One run in a journal, as found by one listing of the journal. This is usually the last run.
 *
 * @param fs      the table's file system; null if there is no journal
 * @param run     the run's number; 0 if there is no journal
 * @param records the run's records, keyed by kind; see MetadataNames.record
 */
final class JournalState private[publish] (
    fs: FileSystem,
    val folder: TableFolder,
    val run: Long,
    records: Map[String, FileStatus]) {

  /**
   * A token that changes whenever a record is added or another journal replaces this one. Runs
   * finish in order, so it is enough for the token to cover the last run's records and their
   * modification times.
   */
  val token: String = if (run == 0) "none"
  else {
    records.toSeq.sortBy(_._1).map { case (kind, status) =>
      s"$kind@${status.getModificationTime}"
    }.mkString(s"$run:", ":", "")
  }

  def exists: Boolean = run != 0

  lazy val prepare: Option[PrepareRecord] = body("prepare").flatMap(Records.prepare)

  /** The RETIRE record as written, which may name files that do not belong to the table. */
  lazy val said: Option[RetireRecord] = body("retire").flatMap(Records.retire)

  /** The part of the RETIRE record that belongs to the table. */
  lazy val retire: Option[RetireRecord] = said.map(_.within(folder))

  /** The SWITCH record, which a run that switches the table's location writes instead of RETIRE. */
  lazy val switch: Option[SwitchRecord] = body("switch").flatMap(Records.switch)

  /** The PARTITIONS record, which a run that switches partitions writes in addition to RETIRE. */
  lazy val partitions: Option[PartitionsRecord] =
    body("partitions").flatMap(Records.partitions)

  lazy val outcome: Option[OutcomeRecord] = body("outcome").flatMap(Records.outcome)

  /**
   * Whether the run has finished. The existence of the DONE record is enough, because a writer that
   * creates it has only the markers left to delete. The record counts even if its bytes are
   * damaged. Otherwise, a committed run would be treated as unfinished, and readers would hide its
   * files because its markers are gone.
   */
  val done: Boolean = records.contains("done")

  /** Files whose modification times changed when the run moved them, and their new times. */
  lazy val placed: Seq[FileRef] = body("done").toSeq.flatMap(Records.placed)

  /**
   * Whether the run is unfinished. If it is, readers apply `overlay`, and the next writer finishes
   * the run.
   */
  def unfinished: Boolean = exists && !done

  /** The modification time of the PREPARE record according to the store's clock. */
  private[publish] def prepareTime: Long =
    records.get("prepare").map(_.getModificationTime).getOrElse(0L)

  /**
   * The correction that readers apply to a listing; None if listings need no correction. While a
   * run switches partitions, no correction is needed, because the catalog only ever names complete
   * folders.
   */
  lazy val overlay: Option[Overlay] =
    if (!unfinished || records.contains("partitions")) None
    else retire.map { record =>
      val commit = outcome.exists(_.commit)
      new Overlay(folder, run, record, commit)
    }

  private def body(kind: String): Option[Array[Byte]] =
    records.get(kind).flatMap(Journal.body(fs, _))
}

object JournalState {

  /** The state of a table that has had no run since it was created or last overwritten. */
  val none: JournalState = new JournalState(null, null, 0L, Map.empty)
}
