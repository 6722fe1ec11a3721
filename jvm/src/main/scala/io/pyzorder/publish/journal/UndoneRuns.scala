package io.pyzorder.publish.journal

import io.pyzorder.storage.FileRef

/** Determines which runs of OPTIMIZE a later RESTORE has undone. */
private[publish] object UndoneRuns {

  /**
   * The numbers of the undone runs. A RESTORE undoes the latest earlier OPTIMIZE whose replaced
   * files are exactly the files that the RESTORE brought back.
   *
   * @param runs runs in ascending order
   */
  def of(runs: Seq[JournalState]): Set[Long] = {
    var optimizes = List.empty[(Long, Set[String])] // with the replaced files, latest run first
    var undone = Set.empty[Long]
    for (run <- runs if run.outcome.exists(_.commit); record <- run.said) {
      if (isRestore(run)) {
        val restored = namesOf(record.add)
        optimizes.find(_._2 == restored).foreach { found =>
          optimizes = optimizes.filterNot(_ eq found)
          undone += found._1
        }
      } else optimizes ::= run.run -> namesOf(record.retire)
    }
    undone
  }

  def isRestore(run: JournalState): Boolean = run.prepare.exists(_.operation == Records.Restore)

  private def namesOf(files: Seq[FileRef]): Set[String] = files.map(_.path).toSet
}
