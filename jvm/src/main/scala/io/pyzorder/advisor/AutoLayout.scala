package io.pyzorder.advisor

import scala.collection.mutable
import scala.util.Try

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable}
import io.pyzorder.common.{ZOrderConf, ZOrderErrors}
import io.pyzorder.index.model.{DeniedColumns, IndexedColumn}
import io.pyzorder.layout.select.LayoutVerdict.percent
import io.pyzorder.skipping.predicate.IndexFilter
import io.pyzorder.workload.{WorkloadCounts, WorkloadRecorder}

/**
 * The clustering columns that ZORDER BY AUTO uses.
 *
 * @param columns the columns; Nil if files are only compacted
 * @param remark  says why
 * @param queries the queries by which the table is cut; None if it is cut evenly
 * @param worth   for each folder, how many bytes the recorded queries would save if its files had
 *                this layout; empty if not estimated
 */
final case class AutoLayout(
    columns: Seq[IndexedColumn],
    remark: String,
    queries: Option[QueryCuts] = None,
    worth: Map[String, Double] = Map.empty)

/**
 * Chooses clustering columns for the queries that sessions have recorded for a table. Only the
 * queries of the last `RecordedLookups.Days` days with queries count, so the choice follows a
 * changing workload.
 *
 * The table is cut at the values of columns, and at conditions that recur in the workload. A cut
 * at a condition separates the rows that meet it from those that do not. It serves conditions for
 * which no order of a column helps, such as `a < b`. Two ways of cutting compete: evenly, by the
 * columns that LayoutSearch finds, or by the queries themselves (see QueryCuts).
 *
 * Half of the recorded conditions, together with the constants in them, choose the columns. The
 * other half judge the choice: a layout that suits only the constants that it was chosen for does
 * not pass. If only one condition of a form is recorded, it does both.
 *
 * The table keeps the columns of its last OPTIMIZE unless the new ones are better by `LeastGain`,
 * and the queries of these days, if they ran once more, would save more bytes in some partition
 * than a rewrite of this partition replaces. If the workload of the next days is similar, the
 * rewrite thus pays off. Partitions in which it does not pay off keep their clustered files.
 */
object AutoLayout {

  private val MostColumns = 4

  /** See LayoutSearch.chosen. */
  private val Margin = 0.1

  /** The share of the opened bytes by which new columns must reduce them. */
  private val LeastGain = 0.2

  /** The share of the opened bytes by which cuts at the queries must be better than even cuts. */
  private val LeastCutGain = 0.05

  /**
   * The approximate number of rows to sample for each new file, and its limits for all of them.
   * OPTIMIZE itself samples at least 500 rows for each new file.
   */
  private val SampledRowsPerFile = 2500L
  private val LeastSampledRows = 20000L
  private val MostSampledRows = 200000L

  /** A condition of fewer queries does not recur. Their user may never ask again. */
  private val LeastQueries = 3

  /** The maximum number of different conditions to evaluate. The most frequent ones are used. */
  private val MostReadings = 1000

  /** The maximum number of conditions that are considered for cuts. The most frequent ones are. */
  private val MostCuts = 8

  /** The maximum number of characters of a condition in a remark. */
  private val LongestText = 200

  /**
   * @param isDeclared whether the table declares `zorder.clusterBy = 'auto'`. If so, a table
   *                   without recorded queries keeps the columns of its last OPTIMIZE
   * @throws io.pyzorder.common.ZOrderException if no queries are recorded and `isDeclared` is false
   */
  def choose(
      session: shim.SparkSession,
      table: ResolvedTable,
      isDeclared: Boolean): AutoLayout = {
    val recorded = WorkloadRecorder.read(session, table.folder(session))
    val last = ClusteringColumns.remembered(session, table)
    if (!recorded.isEmpty) new Choice(session, table, recorded, last).made()
    else if (isDeclared) {
      AutoLayout(last,
        s"No queries on ${table.name} have been recorded, so AUTO ${kept(last)}. To record " +
          "queries, set the table property 'zorder.workload.record' = 'true'.")
    } else throw ZOrderErrors.nothingRecorded(table.name)
  }

  private def kept(last: Seq[IndexedColumn]): String =
    if (last.isEmpty) "only merges small files" else s"keeps ${listed(last)}"

  /** The columns as in ZORDER BY, except that long conditions are shortened. */
  private def listed(columns: Seq[IndexedColumn]): String =
    columns.map(ResolvedTable.inSql).map { text =>
      if (text.length <= LongestText) text else text.take(LongestText) + "…"
    }.mkString("(", ", ", ")")

  /** @param last the clustering columns of the last OPTIMIZE; Nil if there are none */
  private final class Choice(
      session: shim.SparkSession,
      table: ResolvedTable,
      workload: WorkloadCounts,
      last: Seq[IndexedColumn]) {

    private val readings =
      RecordedReading.of(workload.ofLast(RecordedLookups.Days)).take(MostReadings)

    private val usable = new RecordedConditions(session, table.schema.fieldNames.toSeq)

    private val advisor = new Advisor(session, table, last, cuts)
    locally {
      val filters = mutable.HashMap.empty[String, IndexFilter]
      readings.foreach(reading =>
        advisor.read(reading.conditions.filter(usable.isUsable)
            .map(part => filters.getOrElseUpdate(part, advisor.predicate(part).filter))))
    }

    /**
     * The conditions at which the table may be cut, as columns of an index. Predicates on join keys
     * are not among them, because a query compares its keys only with the columns in an index.
     */
    private def cuts: Seq[IndexedColumn] = {
      def filtersOf(counts: RecordedReading => Boolean): Set[String] =
        readings.filter(counts).flatMap(_.filters).toSet
      val recurring = filtersOf(_.chooses).intersect(filtersOf(_.judges)).filter(usable.isCut)
      def queriesWith(text: String) = readings.filter(_.filters.contains(text)).map(_.weight).sum
      recurring.toSeq.map(text => (queriesWith(text), text)).filter(_._1 >= LeastQueries)
        .sortBy { case (count, text) => (-count, text) }
        .take(MostCuts)
        .flatMap { case (_, text) =>
          Try(ClusteringColumns.resolve(session, table, Seq(Left(bare(text))))).toOption
        }
        .flatten.distinct
    }

    /** The condition without parentheses around it. */
    private def bare(condition: String): String = {
      val inner = condition.stripPrefix("(").stripSuffix(")")
      if (inner.length == condition.length - 2 && usable.isUsable(inner)) inner else condition
    }

    private def weights(counts: RecordedReading => Boolean): Seq[Long] =
      readings.map(reading => if (counts(reading)) reading.weight else 0L)

    private val judging = weights(_.judges)

    private val queries: Long = readings.map(_.weight).sum

    def made(): AutoLayout =
      if (advisor.present.files.isEmpty) keeps(s"${table.name} has no rows")
      else if (!advisor.hasFilters) keeps(s"no filter of the $recorded lets clustering $skipFiles")
      else {
        val wanted = SampledRowsPerFile * advisor.present.leaves.sum
        advisor.draw(math.min(MostSampledRows, math.max(LeastSampledRows, wanted)))
        val search = new LayoutSearch(advisor, weights(_.chooses))
        val even = search.chosen(search.candidates(MostColumns, weighs = false), Margin).get
        val best = better(search.cutAtAny(even.columns, isFixed), even)
        if (best.columns.toSet == last.toSet)
          laid(best.copy(columns = last), even,
            s"AUTO keeps ${listed(last)}, the best columns for the $recorded.")
        else judged(best, even, search)
      }

    private def skipFiles: String =
      if (DeniedColumns.of(session.sessionState.conf, table.properties).isEmpty) "skip files"
      else s"skip files (columns in ${ZOrderConf.indexDenyColumns.property} do not count)"

    private val isFixed: Seq[Boolean] =
      readings.map(reading => reading.chooses && reading.judges)

    /** The cut layout if it is better by `LeastCutGain` for the queries that judge. */
    private def better(cut: JudgedLayout, even: JudgedLayout): JudgedLayout =
      if (cut.mean(judging) <= even.mean(judging) * (1 - LeastCutGain)) cut else even

    private def queriesOf(layout: JudgedLayout, even: JudgedLayout): Option[QueryCuts] =
      if (layout.queries.isEmpty) None
      else Some(
        advisor.queries(layout.columns, even.columns, readings.map(_.weight), isFixed))

    /** Compares the best columns found with the columns of the last OPTIMIZE. */
    private def judged(
        best: JudgedLayout,
        even: JudgedLayout,
        search: LayoutSearch): AutoLayout = {
      val before =
        if (last.isEmpty) search.present(complete = true)
        else better(search.cut(last, even.columns, isFixed), search.zOrdered(last))
      val growth =
        if (advisor.present.leaves.sum > 1) advisor.growth(Seq(best.columns)).head else 1.0
      val (now, next) = (before.mean(judging), best.grown(growth).mean(judging))
      val columns = best.columns
      val share = if (now > 0) next / now else 1.0
      if (share > 1 - LeastGain)
        laid(before.copy(columns = last), even,
          kept(s"with other columns, the $recorded would not read at least ${percent(LeastGain)} " +
            "less"))
      else if (last.nonEmpty && !pays(before, best.grown(growth)))
        laid(before.copy(columns = last), even,
          kept(s"with ${listed(columns)}, the $recorded would read ${percent(1 - share)} less, " +
            "but that is less than a rewrite of the table would read"))
      else {
        val judges =
          if (queries == 1) "It"
          else if (readings.forall(_.chooses)) "They"
          else "Queries that were held back from the choice"
        val than = if (last.isEmpty) "read now" else s"read with ${listed(last)}"
        laid(best, even,
          s"AUTO chose ${listed(columns)} for the $recorded. $judges would read " +
            s"${percent(share)} of the bytes that they $than.")
      }
    }

    /** A layout and what it is worth, compared with the current files. */
    private def laid(layout: JudgedLayout, even: JudgedLayout, remark: String): AutoLayout = {
      val queries = queriesOf(layout, even)
      val worth =
        if (layout.columns.isEmpty) Map.empty[String, Double]
        else {
          val saved = savedIn(JudgedLayout.current, layout.copy(queries = queries))
          advisor.present.partitions.flatMap { partition =>
            advisor.present.foldersOf(partition).map { case (folder, size) =>
              folder -> saved(partition.values) * size / math.max(1L, partition.size)
            }
          }.toMap
        }
      AutoLayout(layout.columns, remark, queries, worth)
    }

    /** For each partition, how many bytes the queries save with the second layout. */
    private def savedIn(now: JudgedLayout, next: JudgedLayout): InternalRow => Double = {
      val weights = readings.map(_.weight)
      val (before, after) = (advisor.openedIn(now, weights), advisor.openedIn(next, weights))
      partition =>
        before.getOrElse(partition, 0.0) - after.getOrElse(partition, 0.0) * next.growth
    }

    /** Whether a rewrite of some partition replaces fewer bytes than the queries would save. */
    private def pays(now: JudgedLayout, next: JudgedLayout): Boolean = {
      val saved = savedIn(now, next)
      advisor.present.partitions.exists(partition => saved(partition.values) >= partition.size)
    }

    private def recorded: String = {
      val number = if (queries == 1) "only recorded query" else f"$queries%,d recorded queries"
      val days = RecordedLookups.Days
      if (workload.days.size <= days) number else s"$number of the last $days days with queries"
    }

    private def keeps(why: String): AutoLayout = AutoLayout(last, kept(why))

    private def kept(why: String): String = s"AUTO ${AutoLayout.kept(last)}: $why."
  }
}
