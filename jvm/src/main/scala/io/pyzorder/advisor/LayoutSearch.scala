package io.pyzorder.advisor

import scala.collection.mutable.ArrayBuffer

import io.pyzorder.index.model.IndexedColumn

/**
 * A layout of a table, and what the scans of a workload would open in it.
 *
 * @param columns  the clustering columns; Nil for the table's current files
 * @param isSorted whether the rows are sorted by the columns (`curve` = linear), not Z-ordered
 * @param queries  the scans by which the table is cut; None if it is cut evenly
 * @param opened   for each scan, the total size of the files that it would open, in bytes
 * @param growth   the table's size in this layout divided by its current size; 1 if not measured.
 *                 For a Z-ordered layout, it is measured on the best layout with as many columns
 */
final case class JudgedLayout(
    columns: Seq[IndexedColumn],
    isSorted: Boolean,
    opened: Seq[Double],
    growth: Double,
    queries: Option[QueryCuts] = None) {

  def grown(by: Double): JudgedLayout = copy(opened = opened.map(_ * by), growth = growth * by)

  /**
   * The mean of `opened`.
   *
   * @param weights how often each scan occurs
   */
  def mean(weights: Seq[Long]): Double = {
    val total = weights.sum
    if (total == 0) 0.0
    else opened.iterator.zip(weights.iterator).map { case (b, n) => b * n }.sum / total
  }
}

object JudgedLayout {

  /** The table's current files, without what the scans would open in them. */
  val current: JudgedLayout = JudgedLayout(Nil, isSorted = false, Nil, 1.0)
}

/**
 * Searches for the clustering columns with which the scans of a workload open the fewest bytes.
 *
 * @param advisor has read the scans and drawn a sample
 * @param weights how often each scan occurs. A scan that occurs 0 times does not affect the search
 */
final class LayoutSearch(advisor: Advisor, weights: Seq[Long]) {
  import LayoutSearch._

  /** For each column, the table clustered by it alone, best first. */
  private lazy val alone: Seq[JudgedLayout] =
    best(advisor.columns.map(column => zOrdered(Seq(column))))

  /**
   * Z-ordered layouts, best first. Combines the columns that save the most on their own: each step
   * extends the best layouts so far by one more column.
   *
   * @param most   the maximum number of clustering columns
   * @param weighs whether to measure how the size of the table changes. For each number of columns,
   *               this measurement writes some files of the best layout
   */
  def candidates(most: Int, weighs: Boolean): Seq[JudgedLayout] = {
    val columns = alone.take(MostColumns).map(_.columns.head)
    val found = ArrayBuffer(best(alone): _*)
    val bests = ArrayBuffer(alone.take(1): _*)
    var kept = alone.take(MostColumns)
    (2 to most).foreach { size =>
      val wider = for {
        layout <- kept.take(if (size == 2) MostColumns else Beam)
        column <- columns
        if !layout.columns.contains(column)
      } yield columns.filter(c => c == column || layout.columns.contains(c))
      kept = best(wider.distinct.map(zOrdered))
      found ++= kept
      bests ++= kept.headOption
    }
    if (!weighs || bests.isEmpty) best(found.toSeq)
    else {
      val growth = bests.map(_.columns.length).zip(advisor.growth(bests.map(_.columns).toSeq)).toMap
      best(found.map(layout => layout.grown(growth(layout.columns.length))).toSeq)
    }
  }

  /** The table sorted by each order of the layout's columns, best first; Nil for one column. */
  def sorts(layout: JudgedLayout): Seq[JudgedLayout] =
    if (layout.columns.length < 2) Nil
    else best(layout.columns.permutations.map { by =>
      judged(by, isSorted = true).grown(layout.growth)
    }.toSeq)

  def zOrdered(by: Seq[IndexedColumn]): JudgedLayout = judged(by, isSorted = false)

  /**
   * The table clustered by these columns and cut by the scans.
   *
   * @param evenly  see QueryCuts
   * @param isFixed for each scan, see RecordedQuery
   */
  def cut(
      by: Seq[IndexedColumn],
      evenly: Seq[IndexedColumn],
      isFixed: Seq[Boolean]): JudgedLayout = {
    val queries = advisor.queries(by, evenly, weights, isFixed)
    JudgedLayout(
      by, isSorted = false, advisor.openedOf(by, queries).map(_.toDouble), 1.0, Some(queries))
  }

  /**
   * Like `cut`, at those of the columns that save the most on their own and at `evenly`. If the
   * table has too few files to be cut, it is clustered by `evenly`.
   */
  def cutAtAny(evenly: Seq[IndexedColumn], isFixed: Seq[Boolean]): JudgedLayout = {
    val columns = (evenly ++ alone.take(MostCutColumns).map(_.columns.head)).distinct
    val used = advisor.cutColumns(columns, advisor.queries(columns, evenly, weights, isFixed))
    if (used.isEmpty) zOrdered(evenly) else cut(used, evenly, isFixed)
  }

  /** The current files; see AdvisedFiles.present. */
  def present(complete: Boolean): JudgedLayout =
    JudgedLayout(Nil, isSorted = false, advisor.openedNow(complete).map(_.toDouble), 1.0)

  /**
   * The best of the candidates; None if there are none. A candidate with more columns is better
   * only if each additional column reduces the total size of the opened files by at least the
   * fraction `margin`, and if the saving does not come from only a few scans.
   */
  def chosen(candidates: Seq[JudgedLayout], margin: Double): Option[JudgedLayout] =
    candidates.groupBy(_.columns.length).toSeq.sortBy(_._1).map(_._2.minBy(_.mean(weights)))
      .reduceOption((few, more) => if (saves(more, few, margin)) more else few)

  /**
   * Whether `more` saves at least the margin for each additional column, and more than the standard
   * error of the saving.
   */
  private def saves(more: JudgedLayout, few: JudgedLayout, margin: Double): Boolean = {
    val (then, now) = (more.mean(weights), few.mean(weights))
    val asked = math.pow(1 - margin, more.columns.length - few.columns.length)
    now > 0 && then <= asked * now && {
      val total = weights.sum
      val saved = few.opened.zip(more.opened).map { case (a, b) => a - b }
      val mean = now - then
      val variance =
        saved.zip(weights).map { case (s, n) => n * (s - mean) * (s - mean) }.sum / total
      total < 2 || mean > math.sqrt(variance / (total - 1))
    }
  }

  private def judged(by: Seq[IndexedColumn], isSorted: Boolean): JudgedLayout =
    JudgedLayout(by, isSorted, advisor.openedOf(by, isSorted).map(_.toDouble), 1.0)

  /** The layouts, best first. Of equally good layouts, those with fewer columns come first. */
  private def best(layouts: Seq[JudgedLayout]): Seq[JudgedLayout] =
    layouts.map(layout => (layout.mean(weights), layout)).sortBy { case (mean, layout) =>
      (mean, layout.columns.length, layout.columns.map(_.name).mkString(","))
    }.map(_._2)
}

object LayoutSearch {

  /**
   * The maximum number of columns to combine. The columns that save the most on their own are
   * chosen.
   */
  private val MostColumns = 6

  /** The maximum number of columns at which a table is cut by its scans. */
  private val MostCutColumns = 12

  /** The number of layouts that each step, except the first, extends by one column. */
  private val Beam = 3
}
