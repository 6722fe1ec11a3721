package io.pyzorder.advisor

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.pyzorder.expressions.Boundaries
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.layout.cells.{Clustering, KdTree, Sample, SampledQueries}

/**
 * Rows sampled from a table. To simulate an OPTIMIZE, the rows are clustered by some of the sampled
 * columns, just as OPTIMIZE would cluster the whole table.
 *
 * @param columns  the sampled columns
 * @param sample   the rows
 * @param judgedOf for each table partition, the number of files to simulate
 * @param ranked   the distinct values of each column, indexed by rank
 * @param undrawn  one file for each table partition that the sample missed
 */
final class SampledRows private (
    val columns: Seq[IndexedColumn],
    val sample: Sample,
    val judgedOf: Seq[Int],
    ranked: Seq[SampledRows.Column],
    parts: Seq[SampledRows.Part],
    undrawn: Seq[WhatIfFile]) {

  /** Number of rows in the sample. */
  val length: Int = parts.map(_.length).sum

  /** Number of files that OPTIMIZE would write. */
  val leaves: Int = parts.map(_.leaves).sum + undrawn.length

  /**
   * Number of simulated files. It is lower than `leaves` if too few rows were drawn to represent
   * every file.
   */
  val judged: Int = parts.map(_.judged).sum + undrawn.length

  /**
   * Simulates the files that OPTIMIZE would write.
   *
   * @param by      positions of the clustering columns in `columns`
   * @param linear  whether the curve is `linear`
   * @param queries the queries by which the table is cut; None if it is cut evenly
   */
  def files(
      by: Seq[Int],
      linear: Boolean,
      queries: Option[SampledQueries] = None): Seq[WhatIfFile] = parts.flatMap { part =>
    val leaf = treeOf(part, by, linear, queries).leaves(by.map(part.ids(_)).toArray)
    val bounds = columns.indices.map { c =>
      new RankBounds(ranked(c), part.judged, leaf, part.ranks(c))
    }
    val rows = new Array[Int](part.judged)
    leaf.foreach(number => rows(number) += 1)
    rows.indices.filter(rows(_) > 0).map { number =>
      WhatIfFile(
        (part.bytes.toDouble * rows(number) / leaf.length).toLong, Some(part.values),
        bounds.map(_.statistics(number)))
    }
  } ++ undrawn

  /** The positions in `columns` of the columns that are cut if the table is cut by the queries. */
  def cutColumns(by: Seq[Int], queries: SampledQueries): Seq[Int] =
    parts.flatMap(treeOf(_, by, linear = false, Some(queries)).cutColumns).distinct.map(by)

  private def treeOf(
      part: SampledRows.Part,
      by: Seq[Int],
      linear: Boolean,
      queries: Option[SampledQueries]): KdTree = {
    val keys = by.map(part.ids(_)).toArray
    KdTree.build(keys, part.judged, linear,
      queries.map(_.of(part.rows.map(row => by.map(row(_)).toArray), keys)))
  }

  /**
   * About `atMost` rows, taken at regular intervals. Each row is returned as a file of size 1, so
   * the total size of several such files is the number of rows in them.
   */
  def rows(atMost: Int): Seq[WhatIfFile] = {
    val step = math.max(1, length / math.max(1, atMost))
    parts.flatMap { part =>
      val own = Array.range(0, part.length)
      val bounds = columns.indices.map { c =>
        new RankBounds(ranked(c), part.length, own, part.ranks(c))
      }
      own.indices.by(step)
        .map(row => WhatIfFile(1L, Some(part.values), bounds.map(_.statistics(row))))
    }
  }
}

object SampledRows {

  /**
   * Minimum average number of drawn rows per simulated file, unless all rows were drawn. With fewer
   * rows, a simulated file's bounds would differ too much from those of a real file.
   */
  private val LeastRows = 25

  /**
   * The ranked values of one column.
   *
   * @param values  the value of each rank; rank 0 is null
   * @param nanRank rank of NaN; -1 if no value is NaN
   */
  private[pyzorder] final class Column(val values: Array[Any], val nanRank: Int)

  /**
   * The sampled rows of one table partition.
   *
   * @param values the values of the partition columns
   * @param rows   the values of the sampled columns, indexed by row and column
   * @param bytes  total size of the partition's files in bytes
   * @param leaves number of files that OPTIMIZE would write
   * @param judged number of simulated files among which the drawn rows are divided
   * @param ids    the range ids of the values, indexed by column and row. A row's range ids
   *               determine its file
   * @param ranks  the values' ranks among all drawn values, indexed by column and row
   */
  private final class Part(
      val values: InternalRow,
      val rows: Array[Array[Any]],
      val bytes: Long,
      val leaves: Int,
      val judged: Int,
      val ids: Array[Array[Int]],
      val ranks: Array[Array[Int]],
      val length: Int)

  /**
   * @param columns    the sampled columns
   * @param partitions the table partitions, in the order of their numbers in the sample
   * @param leaves     number of files that OPTIMIZE would write for each partition
   */
  def of(
      columns: Seq[IndexedColumn],
      sample: Sample,
      partitions: Seq[AdvisedPartition],
      leaves: Seq[Int]): SampledRows = {
    val rows = partitions.indices.map(sample.rowsOf)
    val undrawn = partitions.indices.filter(rows(_).isEmpty).map { number =>
      WhatIfFile(
        partitions(number).size, Some(partitions(number).values),
        columns.map(_ => ColumnStatistics.unknown))
    }
    val cut = columns.indices.map { c =>
      sample.boundaries(columns(c).dataType, c, Clustering.MaxBoundaries, Nil)
    }
    val exact = columns.indices.map { c =>
      Boundaries.fromValues(columns(c).dataType, rows.iterator.flatMap(_.iterator.map(_(c))))
    }
    val judged = partitions.indices.map { number =>
      val drawn = rows(number).length
      if (drawn.toDouble / leaves(number) >= LeastRows || drawn == partitions(number).numRows) {
        leaves(number)
      } else math.max(1, drawn / LeastRows)
    }
    val parts = partitions.indices.filter(rows(_).nonEmpty).map { number =>
      def ranked(by: Seq[Boundaries]): Array[Array[Int]] =
        by.zipWithIndex.map { case (b, c) => rows(number).map(row => b.rangeId(row(c))) }.toArray
      val drawn = rows(number).length
      new Part(
        partitions(number).values, rows(number), partitions(number).size, leaves(number),
        judged(number),
        ranked(cut), ranked(exact), drawn)
    }
    val values = columns.indices.map { c =>
      columnOf(exact(c), rows.iterator.flatMap(_.iterator.map(_(c))), columns(c).dataType)
    }
    new SampledRows(columns, sample, judged, values, parts, undrawn)
  }

  private def columnOf(exact: Boundaries, drawn: Iterator[Any], dataType: DataType): Column = {
    val values = new Array[Any](exact.idCount)
    drawn.foreach(value => if (value != null) values(exact.rangeId(value)) = value)
    val last = exact.idCount - 1
    val isNaN = values(last) match {
      case d: Double => d.isNaN
      case f: Float => f.isNaN
      case _ => false
    }
    new Column(values, if (isNaN) last else -1)
  }
}

/**
 * The lowest and highest rank of one column's values in each file.
 *
 * @param file each row's file
 * @param rank each row's rank
 */
private[pyzorder] final class RankBounds(
    column: SampledRows.Column,
    files: Int,
    file: Array[Int],
    rank: Array[Int]) {

  private val least = Array.fill(files)(Int.MaxValue)
  private val greatest, nulls, nans = new Array[Int](files)
  rank.indices.foreach(row => add(file(row), rank(row)))

  private def add(f: Int, r: Int): Unit =
    if (r == 0) nulls(f) += 1
    else if (r == column.nanRank) nans(f) += 1
    else {
      if (r < least(f)) least(f) = r
      if (r > greatest(f)) greatest(f) = r
    }

  def statistics(f: Int): ColumnStatistics = {
    val isEmpty = greatest(f) == 0
    ColumnStatistics(
      bounds = if (isEmpty) None else Some((column.values(least(f)), column.values(greatest(f)))),
      exact = false,
      nullCount = Some(nulls(f).toLong),
      nanSeen = nans(f) > 0,
      empty = isEmpty,
      settingsDependent = false)
  }
}
