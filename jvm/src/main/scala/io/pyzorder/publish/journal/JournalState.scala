package io.pyzorder.publish.journal

import org.apache.hadoop.fs.{FileStatus, FileSystem}

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * The last run of a journal, as one listing showed it.
 *
 * @param fs      the table's file system; null: no journal
 * @param run     the last run's number, 0: no journal
 * @param records the last run's records by kind, as Journal names them
 */
final class JournalState private[publish] (
    fs: FileSystem,
    val folder: TableFolder,
    val run: Long,
    records: Map[String, FileStatus]) {

  /**
   * Changes whenever a record is added, and when another journal takes this one's place: runs are
   * finished in order, so the last run's records tell, with the times they were made at.
   */
  val token: String = if (run == 0) "none"
  else {
    records.toSeq.sortBy(_._1).map { case (kind, status) =>
      s"$kind@${status.getModificationTime}"
    }.mkString(s"$run:", ":", "")
  }

  def exists: Boolean = run != 0

  lazy val prepare: Option[PrepareRecord] = body("prepare").flatMap(Records.prepare)

  /** As it stands there: it may name what is none of the table's. */
  lazy val said: Option[RetireRecord] = body("retire").flatMap(Records.retire)

  /** What of it is the table's. */
  lazy val retire: Option[RetireRecord] = said.map(_.within(folder))

  /** In place of `retire`, of a run that switches the table's location. */
  lazy val switch: Option[SwitchRecord] = body("switch").flatMap(Records.switch)

  /** Beside `retire`, of a run that switches partitions. */
  lazy val partitions: Option[PartitionsRecord] =
    body("partitions").flatMap(Records.partitions)

  lazy val outcome: Option[OutcomeRecord] = body("outcome").flatMap(Records.outcome)

  /**
   * Its name is what it says: whoever writes it has nothing left to do, so that it counts also
   * where its bytes were damaged since. Taken for unfinished, a committed run would hide its files
   * from readers: its markers, by which they are told to be the run's, are gone.
   */
  val done: Boolean = records.contains("done")

  /** Files that the last run has moved, where that gave them another time than `retire` says. */
  lazy val placed: Seq[FileRef] = body("done").toSeq.flatMap(Records.placed)

  /** The last run still has something to do: readers overlay it, the next writer finishes it. */
  def unfinished: Boolean = exists && !done

  /** When a sign of life of the last run's first record was given, in the store's time. */
  private[publish] def prepareTime: Long =
    records.get("prepare").map(_.getModificationTime).getOrElse(0L)

  /**
   * What a reader adds to and takes from a listing; None: a listing is right as it is, as where the
   * catalog names folders that are whole.
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

  /** No journal: a table that no OPTIMIZE has touched since it was last overwritten. */
  val none: JournalState = new JournalState(null, null, 0L, Map.empty)
}
