package io.pyzorder.skipping.files

import scala.annotation.tailrec
import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex

/**
 * The states of the tables that one plan reads. A table's state is the list of its data files, with
 * sizes and modification times, and the snapshots of the index that describe them. The first scan
 * or metadata answer that executes fixes the states of all tables for all scans in the plan,
 * however much later they start. A fixed file that an OPTIMIZE moves is opened where it lies by
 * then.
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
   * Fixes the files of a source and of all others in the plan: two partitions of a table, a table
   * and a path below it or a partition of it that lies elsewhere are one state too. Another source
   * that cannot be listed waits for a scan of its own, which may never come.
   */
  def fix(source: FileSource): Unit = synchronized {
    if (source.fixed.isEmpty) {
      def list(one: FileSource): Option[Listed] =
        try Some(new Listed(one, one.current()))
        catch { case NonFatal(_) if one ne source => None }

      agreeing(openWith(source).flatMap(list(_)), list(_), MaxTries)
        .foreach(one => one.source.fixed = Some(one.state))
    }
  }

  /** What a source is fixed with; where there is no journal, that is Spark's to say. */
  private def openWith(source: FileSource): Seq[FileSource] =
    if (source.folders.isEmpty) Seq(source)
    else source +: sources.toSeq.filter(other =>
      (other ne source) && other.fixed.isEmpty && other.folders.nonEmpty)
}

private[skipping] object PlanState {

  /** Options such as pathGlobFilter let two lists of one folder differ for good. */
  private val MaxTries = 3

  private val plans: Cache[QueryPlanningTracker, PlanState] =
    CacheBuilder.newBuilder().weakKeys().build[QueryPlanningTracker, PlanState]()

  /** The state of the plan that is being optimized by this thread. */
  def ofPlan(): PlanState =
    QueryPlanningTracker.get.fold(new PlanState)(plans.get(_, () => new PlanState))

  /** The lists, those that differ from one another made anew until none does. */
  @tailrec private def agreeing(
      lists: Seq[Listed],
      list: FileSource => Option[Listed],
      tries: Int): Seq[Listed] = {
    val (differing, others) =
      lists.partition(one => lists.exists(other => (one ne other) && !one.agrees(other)))
    if (differing.isEmpty || tries == 0) lists
    else {
      differing.foreach(_.source.forget())
      agreeing(others ++ differing.flatMap(one => list(one.source)), list, tries - 1)
    }
  }

  private type File = (Path, Long, Long)

  /** What one source shows, and below which folders it has looked for it. */
  private final class Listed(val source: FileSource, val state: TableState) {

    private val index: Option[PartitioningAwareFileIndex] =
      Some(state.listing.files).collect { case files: PartitioningAwareFileIndex => files }

    private lazy val roots: Set[Path] = index.fold(Set.empty[Path])(_.rootPaths.toSet)

    /** The roots and all folders above them. */
    private lazy val above: Set[Path] = roots.foldLeft(Set.empty[Path]) { (known, root) =>
      known ++ upwards(root).takeWhile(!known(_))
    }

    private lazy val files: Map[Path, Set[File]] = index.fold(Map.empty[Path, Set[File]]) {
      _.allFiles().groupBy(_.getPath.getParent).map { case (folder, statuses) =>
        folder -> statuses.map(known).toSet
      }
    }

    /**
     * Whether both show the same files wherever both have looked. If something changed between the
     * two, they do not. Lists of different folders are no less one state than a single list of both
     * would be, which asks for one folder after the other as well.
     */
    def agrees(other: Listed): Boolean =
      !(roots.exists(other.above) || other.roots.exists(above)) ||
        (knows(other) && other.knows(this))

    private def knows(other: Listed): Boolean = other.files.forall { case (folder, theirs) =>
      val looked = upwards(folder).exists(roots)
      val expected = if (looked) theirs else theirs.filter(file => roots(file._1))
      expected.subsetOf(files.getOrElse(folder, Set.empty[File]))
    }
  }

  private def upwards(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)

  private def known(status: FileStatus): File =
    (status.getPath, status.getLen, status.getModificationTime)
}
