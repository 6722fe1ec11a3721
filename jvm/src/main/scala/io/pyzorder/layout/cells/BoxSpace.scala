package io.pyzorder.layout.cells

import org.apache.spark.sql.types.DataType

import io.pyzorder.expressions.Boundaries
import io.pyzorder.index.model.ColumnStatistics

/**
 * The properties of a data file that layout decisions depend on.
 *
 * @param bytes   size of the file
 * @param columns statistics of each clustering column, in order
 */
final case class FileBox(bytes: Long, columns: Seq[ColumnStatistics])

/**
 * Represents files as boxes in the space of the clustering columns. In each column, a box extends
 * from the rank of the file's minimum to the rank of its maximum. Values are ranked among the
 * bounds of all files. Rank 0 is null, and the last rank is NaN. A file without statistics for a
 * column spans all of the column's ranks.
 *
 * The share of the data in a range of ranks is estimated from the boxes alone: each file's bytes
 * are spread over the gaps between the ranks that the file spans, in proportion to the distances
 * between the ranks' values. The bytes of a file that spans only one rank are assigned to that
 * rank. Zero-byte files do not affect the estimate. A wrong estimate can make a layout worse, but
 * it cannot make a query result wrong.
 */
final class BoxSpace(types: Seq[DataType], val files: IndexedSeq[FileBox]) {

  private val sides: Array[BoxSpace.Side] = types.indices.map { c =>
    BoxSpace.side(types(c), files.map(_.columns(c)), files.map(_.bytes))
  }.toArray

  def columns: Range = sides.indices

  /** The lowest rank of a file in a column. */
  def low(column: Int, file: Int): Int = sides(column).low(file)

  /** The highest rank of a file in a column. */
  def high(column: Int, file: Int): Int = sides(column).high(file)

  /** The highest rank of a column. */
  def lastRank(column: Int): Int = sides(column).on.length - 2

  /** The share of the data, from 0 to 1, in the ranks from `low` to `high` inclusive. */
  def share(column: Int, low: Int, high: Int): Double = {
    val side = sides(column)
    if (high < low) 0.0
    else side.on(high + 1) - side.on(low) + side.between(high) - side.between(low)
  }

  /** The share of the data in the ranks that a file spans. */
  def width(column: Int, file: Int): Double = share(column, low(column, file), high(column, file))

  /**
   * The share of the data that has the same value as a given row, averaged over the rows in the
   * ranks from `low` to `high`. On average, the files that contain these rows are at least this
   * wide.
   */
  def grain(column: Int, low: Int, high: Int): Double = {
    val squares = sides(column).squares
    val all = share(column, low, high)
    if (high >= low && all > 0) (squares(high + 1) - squares(low)) / all else 0.0
  }
}

object BoxSpace {

  /**
   * The ranks of one column, and the distribution of the data over the ranks.
   *
   * @param low     lowest rank of each file
   * @param high    highest rank of each file
   * @param on      for each rank, and for the position after the last rank, the share of the data
   *                at lower ranks, excluding the gaps
   * @param between for each rank, the share of the data in the gaps below it
   */
  private final class Side(
      val low: Array[Int],
      val high: Array[Int],
      val on: Array[Double],
      val between: Array[Double]) {

    /**
     * For each rank, and for the position after the last rank, the sum of the squared shares of all
     * lower ranks.
     */
    val squares: Array[Double] =
      on.indices.dropRight(1).map(rank => math.pow(on(rank + 1) - on(rank), 2))
        .scanLeft(0.0)(_ + _).toArray
  }

  private def side(
      dataType: DataType,
      statistics: IndexedSeq[ColumnStatistics],
      bytes: IndexedSeq[Long]): Side = {
    val values = Boundaries.fromValues(
      dataType, statistics.iterator.flatMap(_.bounds).flatMap { case (a, b) => Iterator(a, b) })
    val nan = values.idCount
    val low, high = new Array[Int](statistics.length)
    statistics.indices.foreach { i =>
      val known = statistics(i)
      val bounds = known.bounds.map { case (least, greatest) =>
        (values.rangeId(least), values.rangeId(greatest))
      }
      val hasNull = !known.nullCount.contains(0L)
      low(i) =
        if (hasNull) 0
        else if (known.empty) nan
        else bounds.map(_._1).getOrElse(0)
      high(i) =
        if (known.nanSeen) nan
        else if (known.empty) 0
        else bounds.map(_._2).getOrElse(nan)
    }
    // Values have ids of 2 and above; id 1 stands for values below all boundaries.
    val distance = Array.tabulate(nan) { rank =>
      if (rank < 2 || rank + 1 >= nan) 0.0
      else values.position(rank - 1) - values.position(rank - 2)
    }
    spread(low, high, bytes, distance)
  }

  /** @param distance the distance from each rank to the next */
  private def spread(
      low: Array[Int],
      high: Array[Int],
      bytes: IndexedSeq[Long],
      distance: Array[Double]): Side = {
    val ranks = distance.length + 1
    val total = math.max(1.0, bytes.iterator.map(_.toDouble).sum)
    val reach = distance.scanLeft(0.0)(_ + _)
    val on = new Array[Double](ranks + 1)
    // The change in the density of the data at each rank. `byDistance` measures density per unit of
    // distance; `byNumber`, per gap between ranks.
    val byDistance, byNumber = new Array[Double](ranks + 1)
    low.indices.foreach { i =>
      val share = bytes(i) / total
      val length = reach(high(i)) - reach(low(i))
      if (low(i) == high(i)) on(low(i) + 1) += share
      else {
        val change = if (length > 0) byDistance else byNumber
        val density = share / (if (length > 0) length else (high(i) - low(i)).toDouble)
        change(low(i)) += density
        change(high(i)) -= density
      }
    }
    val between = new Array[Double](ranks)
    var perDistance, perGap = 0.0
    (0 until ranks - 1).foreach { rank =>
      perDistance += byDistance(rank)
      perGap += byNumber(rank)
      between(rank + 1) = between(rank) + math.max(0.0, perDistance * distance(rank) + perGap)
    }
    (1 to ranks).foreach(rank => on(rank) += on(rank - 1))
    new Side(low, high, on, between)
  }
}
