package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex

/**
 * The states of the tables that one plan reads. A table's state is the list of its data files, with
 * sizes and modification times, and the snapshots of the index that describe them. The first scan
 * or metadata answer that executes fixes it for all scans of the table in the plan, however much
 * later they start. A fixed file that an OPTIMIZE moves is opened where it lies by then.
 *
 * Why the plan owns the state, and not an execution: a physical scan keeps its list of files, so
 * that a plan which is executed again could mix old lists with new ones.
 * Every DataFrame action plans anew and sees the newest state. Planning and EXPLAIN fix nothing.
 *
 * One plan is what one QueryExecution optimizes, subqueries included, and what adaptive execution
 * makes of it later: the tracker of the QueryExecution is there whenever the optimizer runs, and
 * the rules of adaptive execution copy the file indexes, which hold the state. So it lives exactly
 * as long as the plan.
 */
private[skipping] final class PlanState {
  import PlanState._

  private val sources = ArrayBuffer.empty[FileSource]

  /** The plan's only source that reads these files in this way. */
  def source(candidate: FileSource): FileSource = synchronized {
    sources.find(_.readsLike(candidate)).getOrElse {
      sources += candidate
      candidate
    }
  }

  /**
   * Fixes the files of a source, with those of all other sources of the same table: two partitions
   * of a table, or the table and a path below it, are one state too.
   */
  def fix(source: FileSource): Unit = synchronized {
    if (source.fixed.isEmpty) {
      val together = sources.toSeq.filter(s => s.fixed.isEmpty && s.sharesTable(source))
      val states = Iterator.continually(together.map(_.current())).zipWithIndex
        .find { case (states, tries) =>
          val accepted = tries == MaxTries || agree(states)
          if (!accepted) together.foreach(_.forget())
          accepted
        }.get._1
      together.zip(states).foreach { case (each, state) => each.fixed = Some(state) }
    }
  }
}

private[skipping] object PlanState {

  /** Options such as pathGlobFilter let two lists of one folder differ for good. */
  private val MaxTries = 3

  private val plans: Cache[QueryPlanningTracker, PlanState] =
    CacheBuilder.newBuilder().weakKeys().build[QueryPlanningTracker, PlanState]()

  /** The state of the plan that is being optimized by this thread. */
  def ofPlan(): PlanState =
    QueryPlanningTracker.get.fold(new PlanState)(plans.get(_, () => new PlanState))

  /**
   * Whether the lists show the same files of every folder that several of them cover. A folder that
   * changed between two of them does not; lists of other folders are no less one state than a
   * single list of both would be, which asks for one folder after the other as well.
   */
  private def agree(states: Seq[TableState]): Boolean = states.lengthCompare(2) < 0 || {
    val lists = states.map(_.listing.files).collect { case files: PartitioningAwareFileIndex =>
      files.allFiles().groupBy(_.getPath.getParent).map { case (folder, statuses) =>
        folder -> statuses.map(known).toSet
      }
    }
    lists.tails.forall {
      case first +: others => others.forall(agree(first, _))
      case _ => true
    }
  }

  private type Files = Map[Path, Set[(Path, Long, Long)]]

  private def agree(one: Files, other: Files): Boolean =
    one.forall { case (folder, files) => other.get(folder).forall(_ == files) }

  private def known(status: FileStatus): (Path, Long, Long) =
    (status.getPath, status.getLen, status.getModificationTime)
}
