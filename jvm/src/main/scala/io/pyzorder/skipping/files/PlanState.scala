package io.pyzorder.skipping.files

import java.util.concurrent.{ConcurrentHashMap, TimeUnit}
import java.util.concurrent.atomic.AtomicReference

import scala.annotation.tailrec
import scala.collection.mutable
import scala.collection.mutable.ArrayBuffer
import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.expressions.{AttributeSet, Expression, ScalarSubquery}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType

import io.pyzorder.storage.{FileVersion, Links}

/**
 * The states of the tables that one plan reads. A table's state is the list of its data files, with
 * sizes and modification times, and the index snapshots that describe them. The states of all
 * tables are pinned before the first scan or metadata-only operator executes. All scans in the plan
 * then use these states, however late they start. If an OPTIMIZE then moves a file, the file is
 * opened at its new path.
 *
 * The states belong to the plan rather than to one execution. A physical scan keeps its list of
 * files, so a plan that is executed again could otherwise mix old lists with new ones. If a
 * DataFrame is collected again, it therefore reads the same state as the first time. This is also
 * how plain Spark behaves. Planning and EXPLAIN do not pin the states. An execution pins them at
 * its start, when Spark describes the plan.
 *
 * A plan comprises everything that one QueryExecution optimizes, including subqueries, and the
 * plans that adaptive execution later derives from it. Whenever the optimizer runs, it finds the
 * PlanState through the QueryExecution's tracker. The rules of adaptive execution copy the file
 * indexes, which refer to the PlanState. The PlanState therefore exists exactly as long as the
 * plan.
 */
private[skipping] final class PlanState {
  import PlanState._

  private val sources = ArrayBuffer.empty[FileSource]
  private val bounds =
    new ConcurrentHashMap[(Seq[ScannedColumn], DataType, Int), KeyBounds]
  private val scans = ArrayBuffer.empty[(FileSource, () => Seq[FileStatus])]

  /**
   * The plan's source that is equivalent to `candidate`, or `candidate` itself if the plan has no
   * such source yet.
   */
  def source(candidate: FileSource): FileSource = synchronized {
    sources.find(_.readsLike(candidate)).getOrElse {
      sources += candidate
      candidate
    }
  }

  /** The results of the plan's filters. */
  private[files] val evaluated = new EvaluatedPartitions

  /** The files of the plan's scans. */
  private[files] val files = new ScanFiles

  /** The plan's ranges for a key whose values all come from these columns (see KeyBounds). */
  def bounds(sources: Seq[ScannedColumn], dataType: DataType, limit: Int): KeyBounds =
    bounds.computeIfAbsent(
      (sources, dataType, limit), _ => new KeyBounds(sources, dataType, limit))

  /**
   * Evaluates `use` while the files of a source are pinned. If they are not pinned yet, pins them
   * first, together with the files of the plan's other sources (see `openWith`). The sources must
   * agree on the files that they share. For example, two sources share files if both read
   * partitions of the same table. They also share files if one reads a table and the other reads a
   * path below the table's folder, or a partition of the table at another location. If one of the
   * other sources cannot be listed, it remains unpinned until one of its own scans executes, which
   * may never happen.
   */
  def fixed[T](source: FileSource)(use: => T): T = synchronized {
    fix(source)
    choosing = true
    try {
      val result = use
      source.isSettled = true
      result
    } finally choosing = false
  }

  /** Pins a source's list of files before a scan executes, unless it is already pinned. */
  def fix(source: FileSource): Unit = synchronized {
    if (source.fixed.isEmpty) {
      sources.filter(_.fixed.isEmpty).foreach(_.findFoldersAgain())
      val open = openWith(source)
      fix(open, source, _.current())
      open.foreach(settle)
    }
  }

  /**
   * Whether the state comes from a listing that no scan has used yet. Later scans must check that
   * the files they would skip have not changed since.
   */
  def isFresh(state: TableState): Boolean = synchronized {
    val fresh = state.isNew
    if (isChoosing) state.isNew = false
    fresh
  }

  /** Whether files are being chosen for an execution. */
  private[files] def isChoosing: Boolean = synchronized(choosing)

  private var choosing: Boolean = false

  /** Requests that all scans of a source use the same list of files (see FileSource). */
  def keepListing(source: FileSource): Unit = synchronized(source.keepListing())

  /** Makes sure that a source's state includes the partitions that these filters select. */
  def select(source: FileSource, partitionFilters: Seq[Expression]): Unit =
    synchronized(source.select(partitionFilters))

  /**
   * Registers a scan of the plan before it executes.
   *
   * @param opened returns the files that the scan will open in its source's state, possibly with
   *               some further files
   */
  def expect(source: FileSource)(opened: () => Seq[FileStatus]): Unit =
    synchronized(scans += ((source, opened)))

  /** Records properties of a query, or of a subquery, which Spark optimizes separately. */
  def note(query: LogicalPlan): Unit = synchronized {
    hasSubquery ||= mayPrunePartitions(query) ||
      query.exists(_.expressions.exists(_.exists(_.isInstanceOf[ScalarSubquery])))
    allDeterministic &&= query.deterministic
  }

  private var hasSubquery: Boolean = false

  /** Whether Spark may later add a subquery whose values select partitions. */
  private def mayPrunePartitions(query: LogicalPlan): Boolean =
    SQLConf.get.dynamicPartitionPruningEnabled && query.exists(_.isInstanceOf[Join]) &&
      query.exists {
        case relation: LogicalRelation => relation.relation match {
            case files: HadoopFsRelation => files.partitionSchema.nonEmpty
            case _ => false
          }
        case _ => false
      }

  private var allDeterministic: Boolean = true

  /** Whether all expressions of the query are deterministic. */
  def isDeterministic: Boolean = synchronized(allDeterministic)

  /**
   * Whether the query and a subquery, or two subqueries, may both read the source. The query and
   * its subqueries are planned separately, so it is not known whether Spark will reuse an exchange
   * of one in place of an equal exchange of another. This method returns the same result for all of
   * them, because the whole query is optimized before any part of it is planned.
   */
  def isShared(source: FileSource): Boolean =
    synchronized(hasSubquery && scans.count(_._1 eq source) > 1)

  private val shares =
    new ConcurrentHashMap[(Seq[ScannedColumn], FilteredScan, Expression), Option[Double]]

  /** A share of files, which is computed once for the plan (see KeyBounds). */
  private[files] def share(of: (Seq[ScannedColumn], FilteredScan, Expression))(
      compute: => Option[Double]): Option[Double] =
    Option(shares.get(of)).getOrElse {
      val share = compute
      shares.put(of, share)
      share
    }

  /** Exchanges in canonical form, each with the columns of all exchanges that equal it. */
  private val exchanges = mutable.HashMap.empty[SparkPlan, Set[AttributeSet]]

  /** Records exchanges of the query, or of one of its subqueries, in their final form. */
  def noteExchanges(more: Seq[SparkPlan]): Unit = synchronized {
    more.foreach { exchange =>
      val equal = exchanges.getOrElse(exchange.canonicalized, Set.empty[AttributeSet])
      exchanges(exchange.canonicalized) = equal + exchange.outputSet
    }
  }

  /** Whether an equal exchange with other columns has been recorded. */
  def hasOther(exchange: SparkPlan): Boolean = synchronized {
    exchanges.get(exchange.canonicalized).exists(_.exists(_ != exchange.outputSet))
  }

  private val waits = new ConcurrentHashMap[SparkPlan, Wait]

  /** The wait of the plan's scans for a broadcast. */
  def waitFor(broadcast: SparkPlan): Wait =
    waits.computeIfAbsent(broadcast.canonicalized, _ => new Wait)

  /** Whether the files of a source may still be listed again, because no scan uses them yet. */
  def mayListAnew(source: FileSource): Boolean =
    synchronized(!related(source).exists(_.isSettled))

  /**
   * Lists a source again, together with the sources that share folders with it, and pins their new
   * states.
   */
  def fixAnew(source: FileSource): Unit = synchronized {
    val group = related(source)
    group.foreach(_.fixed = None)
    fix(group, source, _.listedAnew())
  }

  /**
   * Checks a state that was determined earlier, before the first of several scans uses it. The
   * files that any of these scans will open must be unchanged, because the tables cannot be listed
   * again once a scan has chosen its files. If there is only one scan, the scan itself checks the
   * files that it has chosen. By then, the join keys and the results of subqueries are known, so
   * there are fewer files to check.
   */
  private def settle(source: FileSource): Unit =
    if (source.fixed.exists(_.asOf.isDefined) && mayListAnew(source)) {
      val group = related(source).toSet
      val expected = scans.collect { case (of, opened) if group(of) => opened }
      if (expected.length > 1) {
        if (source.haveChanged(expected.flatMap(_.apply()).toSeq)) fixAnew(source)
        group.foreach(_.isSettled = true)
      }
    }

  private def fix(
      several: Seq[FileSource],
      source: FileSource,
      state: FileSource => TableState): Unit = {
    val lists = several.flatMap { one =>
      try Some(new Listed(one, state(one)))
      catch { case NonFatal(_) if one ne source => None }
    }
    lists.foreach(one => one.source.fixed = Some(one.state))
    val differing = lists.filter(one => lists.exists(other => (other ne one) && !one.agrees(other)))
    FileSource.listTogether(group(differing, lists).map(_.source))
  }

  /**
   * The given source and the sources that are pinned together with it. A source without a journal
   * is pinned alone, because Spark lists its files.
   */
  private def openWith(source: FileSource): Seq[FileSource] =
    if (source.folders.isEmpty) Seq(source)
    else source +: sources.toSeq.filter(other =>
      (other ne source) && other.fixed.isEmpty && other.folders.nonEmpty)

  /**
   * The given pinned source and the sources that share folders or a table with it, directly or
   * through other sources. If one source reads a partition of a table and another source reads
   * another partition, they share no folder, but one of them must not be listed again alone: the
   * other one may read an older state of the table.
   */
  private def related(source: FileSource): Seq[FileSource] = {
    val lists = sources.toSeq.filter(one => (one eq source) || one.folders.nonEmpty)
      .flatMap(one => one.fixed.map(new Listed(one, _)))
    if (lists.length == 1) Seq(source)
    else group(lists.filter(_.source eq source), lists).map(_.source)
  }

  /** The members of `lists` that belong to a member of `known`, directly or through others. */
  @tailrec private def group(known: Seq[Listed], lists: Seq[Listed]): Seq[Listed] = {
    val more = lists.filter(one => !known.contains(one) && known.exists(one.belongsTo))
    if (more.isEmpty) known else group(known ++ more, lists)
  }
}

private[skipping] object PlanState {

  /**
   * The values are weak, too, because a filter with a subquery refers to the subquery's plan, and
   * so to the tracker. The plan's file indexes keep its state in memory. Without a file index,
   * nothing needs the state.
   */
  private val plans: Cache[QueryPlanningTracker, PlanState] =
    CacheBuilder.newBuilder().weakKeys().weakValues().build[QueryPlanningTracker, PlanState]()

  /** The state of the plan that this thread is optimizing. */
  def ofPlan(): PlanState =
    QueryPlanningTracker.get.fold(new PlanState)(plans.get(_, () => new PlanState))

  /** A wait for something that Spark executes. */
  final class Wait {
    private val begun = new AtomicReference[java.lang.Long]
    private val condition = new AtomicReference[() => Boolean](() => false)

    /** Starts the clock, unless it already runs. */
    def begin(): Unit = begun.compareAndSet(null, System.nanoTime)

    /** Stops the clock. */
    def reset(): Unit = begun.set(null)

    /** Whether the wait began at least this many milliseconds ago. */
    def hasTaken(millis: Long): Boolean = millis == 0 ||
      Option(begun.get).exists(System.nanoTime - _ >= TimeUnit.MILLISECONDS.toNanos(millis))

    /** The wait ends as soon as the condition is met. */
    def endIf(isMet: => Boolean): Unit = condition.set(() => isMet)

    def hasEnded: Boolean = condition.get.apply()
  }

  /** The files that one source lists, and the folders in which it looked for them. */
  private final class Listed(val source: FileSource, val state: TableState) {

    private val index: Option[PartitioningAwareFileIndex] =
      Some(state.listing.files).collect { case files: PartitioningAwareFileIndex => files }

    private lazy val roots: Set[Path] = index.fold(Set.empty[Path])(_.rootPaths.toSet)

    /** The root paths and all folders above them. */
    private lazy val above: Set[Path] = roots.foldLeft(Set.empty[Path]) { (known, root) =>
      known ++ upwards(root).takeWhile(!known(_))
    }

    private lazy val files: Map[Path, Set[FileVersion]] =
      index.fold(Map.empty[Path, Set[FileVersion]]) {
        _.allFiles().groupBy(_.getPath.getParent).map { case (folder, statuses) =>
          folder -> statuses.map(FileVersion.of).toSet
        }
      }

    /**
     * Whether this source and `other` list the same files wherever both have looked. They do not
     * agree if something changed between the two listings, or if options such as pathGlobFilter
     * exclude files from one of the listings. Two sources that read disjoint parts of one table
     * agree if both have just been listed, or if both states come from the same moment. Separate
     * listings of two disjoint folders are as consistent as a single listing of both folders,
     * because a single listing also lists one folder after the other. Sources that do not agree are
     * listed together, with all other sources of their tables.
     */
    def agrees(other: Listed): Boolean =
      if (meets(other)) knows(other) && other.knows(this)
      else state.asOf == other.state.asOf || !belongsTo(other)

    /** Whether both sources read the same table, even through symbolic links, or share folders. */
    def belongsTo(other: Listed): Boolean = meets(other) || tables.exists(other.tables)

    private lazy val tables: Set[Path] = source.folders.map(table => Links.target(table.root)).toSet

    /** Whether a root path of one source is at or below a root path of the other. */
    def meets(other: Listed): Boolean =
      roots.exists(other.above) || other.roots.exists(above)

    private def knows(other: Listed): Boolean = other.files.forall { case (folder, theirs) =>
      val looked = upwards(folder).exists(roots)
      val expected = if (looked) theirs else theirs.filter(file => roots(file.path))
      expected.subsetOf(files.getOrElse(folder, Set.empty[FileVersion]))
    }
  }

  private def upwards(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)
}
