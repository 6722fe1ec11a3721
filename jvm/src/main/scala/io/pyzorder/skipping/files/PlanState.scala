package io.pyzorder.skipping.files

import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex

/**
 * The states of the tables that one plan reads. A table's state is the list of its data files, with
 * sizes and modification times, and the index snapshots that describe them. The first scan or
 * metadata answer to execute fixes the states of all tables for all scans in the plan, however late
 * they start. If an OPTIMIZE moves a fixed file, the file is opened at its new place.
 *
 * The plan owns the state, not the execution: a physical scan keeps its list of files, so a plan
 * that is executed again could otherwise mix old lists with new ones. A DataFrame that is collected
 * again therefore shows the state that it read first, as in plain Spark. Planning and EXPLAIN fix
 * nothing; describing a plan at the start of its execution does.
 *
 * A plan is what one QueryExecution optimizes, including subqueries, and whatever adaptive
 * execution makes of it later. The QueryExecution's tracker is available whenever the optimizer
 * runs, and the rules of adaptive execution copy the file indexes, which hold the state. The state
 * therefore lives exactly as long as the plan.
 */
private[skipping] final class PlanState {
  import PlanState._

  private val sources = ArrayBuffer.empty[FileSource]

  /** The plan's single source that reads these files in this way. */
  def source(candidate: FileSource): FileSource = synchronized {
    sources.find(_.readsLike(candidate)).getOrElse {
      sources += candidate
      candidate
    }
  }

  /**
   * Fixes the files of a source, unless they are fixed already, together with those of all other
   * sources in the plan, and evaluates `use`. Two partitions of a table belong to one state, and so
   * do a table and a path below it or one of its partitions at another location. If another source
   * cannot be listed, it remains unfixed until a scan of its own executes, which may never happen.
   */
  def fixed[T](source: FileSource)(use: => T): T = synchronized {
    fix(source)
    isChoosing = true
    try {
      val result = use
      isTaken = true
      result
    } finally isChoosing = false
  }

  /** Fixes the files of a source, unless they are fixed already, before a scan executes. */
  def fix(source: FileSource): Unit = synchronized {
    if (source.fixed.isEmpty) fix(source, _.current())
  }

  /**
   * Whether the store has just been listed for a state. This is true until a scan has made use of
   * it. A later scan must check whether each file that it would skip is still the listed one.
   */
  def isFresh(state: TableState): Boolean = synchronized {
    val fresh = state.isNew
    if (isChoosing) state.isNew = false
    fresh
  }

  private var isChoosing: Boolean = false

  /** Makes sure that the state of a source has the partitions that these filters select. */
  def select(source: FileSource, partitionFilters: Seq[Expression]): Unit =
    synchronized(source.select(partitionFilters))

  /** Whether a scan or metadata answer of the plan already uses the fixed states. */
  var isTaken: Boolean = false

  /** Fixes the states of all sources again, from new listings. */
  def fixAnew(source: FileSource): Unit = synchronized {
    sources.foreach(_.fixed = None)
    fix(source, _.listedAnew())
  }

  private def fix(source: FileSource, state: FileSource => TableState): Unit = {
    val lists = openWith(source).flatMap { one =>
      try Some(new Listed(one, state(one)))
      catch { case NonFatal(_) if one ne source => None }
    }
    lists.foreach(one => one.source.fixed = Some(one.state))
    val differing = lists.filter(one => lists.exists(other => (other ne one) && !one.agrees(other)))
    FileSource.listTogether(differing.map(_.source))
  }

  /** The sources fixed together with this one. Without a journal, the listing is left to Spark. */
  private def openWith(source: FileSource): Seq[FileSource] =
    if (source.folders.isEmpty) Seq(source)
    else source +: sources.toSeq.filter(other =>
      (other ne source) && other.fixed.isEmpty && other.folders.nonEmpty)
}

private[skipping] object PlanState {

  private val plans: Cache[QueryPlanningTracker, PlanState] =
    CacheBuilder.newBuilder().weakKeys().build[QueryPlanningTracker, PlanState]()

  /** The state of the plan that this thread is optimizing. */
  def ofPlan(): PlanState =
    QueryPlanningTracker.get.fold(new PlanState)(plans.get(_, () => new PlanState))

  private type File = (Path, Long, Long)

  /** The files that one source lists, and the folders in which it looked for them. */
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
     * Whether both list the same files wherever both have looked. They do not if something changed
     * between the two listings, or if options such as pathGlobFilter exclude files from one of
     * them; all sources that differ are then listed together. Lists of disjoint folders are as much
     * one state as a single list of both would be, because that also lists one folder after the
     * other.
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
