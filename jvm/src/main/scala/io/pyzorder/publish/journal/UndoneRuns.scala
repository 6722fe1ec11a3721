package io.pyzorder.publish.journal

import io.pyzorder.storage.FileRef

/** Determines which runs of OPTIMIZE a later RESTORE has undone. */
private[publish] object UndoneRuns {

  /**
   * The numbers of the undone runs. A RESTORE undoes the last OPTIMIZE before it that replaced
   * exactly the files that the RESTORE brought back.
   *
   * @param runs runs in ascending order
   */
  def of(runs: Seq[JournalState]): Set[Long] =
    runs.filter(_.outcome.exists(_.commit)).foldLeft(Seq.empty[JournalState] -> Set.empty[Long]) {
      case ((optimizes, undone), run) if isRestore(run) =>
        val undoes = run.said.map(record => namesOf(record.add)).flatMap { restored =>
          optimizes.find(_.said.exists(record => namesOf(record.retire) == restored))
        }
        (optimizes.filterNot(undoes.contains), undone ++ undoes.map(_.run))
      case ((optimizes, undone), run) => (run +: optimizes, undone)
    }._2

  def isRestore(run: JournalState): Boolean = run.prepare.exists(_.operation == Records.Restore)

  private def namesOf(files: Seq[FileRef]): Set[String] = files.map(_.path).toSet
}
