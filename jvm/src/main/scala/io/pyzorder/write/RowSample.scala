package io.pyzorder.write

import java.util.SplittableRandom

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.DataType

import io.pyzorder.common.TaskFunction
import io.pyzorder.layout.cells.Sample

/**
 * Rows drawn at random from the result of a query, whose size is not known in advance.
 *
 * @param sample     the clustering keys of the drawn rows
 * @param partitions the partition values of the table partitions from which rows were drawn
 * @param numRows    estimated number of rows in each of these partitions
 * @param rowSize    average size of a row in Spark's memory, in bytes
 */
final case class RowSample(
    sample: Sample,
    partitions: Seq[UnsafeRow],
    numRows: Seq[Double],
    rowSize: Double)

object RowSample {

  /** Minimum number of rows that each task draws, if it has that many. */
  private val LeastPerTask = 50

  /**
   * The rows drawn from a task's `total` rows. Each row had the same probability of being drawn.
   */
  private final case class Drawn(
      total: Long,
      partitions: Array[UnsafeRow],
      keys: Array[Array[Any]],
      bytes: Long)

  /**
   * Each task draws the same number of rows by reservoir sampling (Vitter's Algorithm R). A row in
   * a task with few rows is therefore more likely to be drawn. The driver corrects for this by
   * dropping some of the rows from such tasks. Every row then has the same probability of being in
   * the sample.
   *
   * @param size approximate number of rows to draw
   */
  def take(
      rows: SparkPlan,
      keys: Seq[Expression],
      partitions: Seq[Expression],
      size: Int): RowSample = {
    val input = rows.execute()
    val quota = math.max(LeastPerTask, size / math.max(1, input.getNumPartitions))
    val output = rows.output
    val types = keys.map(_.dataType).toArray
    val boundKeys = BindReferences.bindReferences(keys, output)
    val boundPartitions = BindReferences.bindReferences(partitions, output)
    val everything = BindReferences.bindReferences[Expression](output, output)
    val drawn = input.mapPartitions(TaskFunction { (rows: Iterator[InternalRow]) =>
      Iterator(draw(rows, quota, boundKeys, types, boundPartitions, everything))
    }).collect().filter(_.total > 0)
    merged(drawn.toSeq)
  }

  private def draw(
      rows: Iterator[InternalRow],
      quota: Int,
      keys: Seq[Expression],
      types: Array[DataType],
      partitions: Seq[Expression],
      everything: Seq[Expression]): Drawn = {
    val random = new SplittableRandom(TaskContext.getPartitionId() * 0x9e3779b97f4a7c15L)
    val keysOf = UnsafeProjection.create(keys)
    val partitionOf = UnsafeProjection.create(partitions)
    val whole = UnsafeProjection.create(everything)
    val drawnKeys = new Array[Array[Any]](quota)
    val drawnPartitions = new Array[UnsafeRow](quota)
    val sizes = new Array[Int](quota)
    var total = 0L
    rows.foreach { row =>
      val place = if (total < quota) total else random.nextLong(total + 1)
      total += 1
      if (place < quota) {
        val key = keysOf(row).copy()
        drawnKeys(place.toInt) = types.indices.map(c => key.get(c, types(c))).toArray[Any]
        drawnPartitions(place.toInt) = partitionOf(row).copy()
        sizes(place.toInt) = whole(row).getSizeInBytes
      }
    }
    val count = math.min(total, quota).toInt
    Drawn(
      total, drawnPartitions.take(count), drawnKeys.take(count), sizes.iterator.map(_.toLong).sum)
  }

  private def merged(drawn: Seq[Drawn]): RowSample = {
    val rowsPerDraw = drawn.map(task => task.total.toDouble / task.keys.length)
    val most = rowsPerDraw.foldLeft(1.0)(math.max)
    val random = new SplittableRandom(drawn.length)
    val kept = drawn.zip(rowsPerDraw).flatMap { case (task, weight) =>
      task.partitions.zip(task.keys).filter(_ => random.nextDouble() < weight / most)
    }
    val partitions = kept.map(_._1).distinct
    val numbers = partitions.zipWithIndex.toMap
    val numberOf = kept.map { case (partition, _) => numbers(partition) }.toArray
    val numRows = new Array[Double](partitions.length)
    numberOf.foreach(number => numRows(number) += most)
    RowSample(
      new Sample(kept.map(_._2).toArray, numberOf),
      partitions,
      numRows.toSeq,
      drawn.map(_.bytes).sum.toDouble / math.max(1, drawn.map(_.keys.length).sum))
  }
}
