package io.pyzorder.layout.cells

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.ByteBuffer
import java.util.SplittableRandom

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, BindReferences, Expression}
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.Platform

import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.expressions.Boundaries

/**
 * The values of the clustering columns in rows drawn at random.
 *
 * @param values    the values in Catalyst's internal representation, indexed first by sampled row,
 *                  then by clustering column
 * @param partition number of each sampled row's table partition
 */
final class Sample(values: Array[Array[Any]], partition: Array[Int]) {

  /** The boundaries of a column: up to `limit` of the drawn values, and all of `others`. */
  def boundaries(dataType: DataType, number: Int, limit: Int, others: Seq[Any]): Boundaries = {
    val all = Boundaries.fromValues(dataType, values.iterator.map(_(number)))
    val kept =
      if (all.size <= limit) values.iterator.map(_(number))
      else {
        val step = all.size / limit + 1
        val perId = new Array[Any](all.idCount)
        values.foreach { row =>
          if (row(number) != null) perId(all.rangeId(row(number))) = row(number)
        }
        perId.iterator.filter(_ != null).zipWithIndex.filter(_._2 % step == 0).map(_._1)
      }
    if (all.size <= limit && others.isEmpty) all
    else Boundaries.fromValues(dataType, kept ++ others)
  }

  /** The same rows with only the columns at these positions, in this order. */
  def only(columns: Seq[Int]): Sample =
    new Sample(values.map(row => columns.map(row(_)).toArray), partition)

  /** The rows drawn from one table partition. */
  def rowsOf(number: Int): Array[Array[Any]] = byPartition.getOrElse(number, Array.empty)

  /** The rows of each table partition, grouped on first use. */
  private lazy val byPartition: Map[Int, Array[Array[Any]]] =
    values.indices.groupBy(partition(_)).map { case (number, rows) =>
      number -> rows.map(values(_)).toArray
    }

  /** The range ids of one table partition's rows, indexed first by column, then by row. */
  def ids(boundaries: Array[Boundaries], number: Int): Array[Array[Int]] = {
    val rows = rowsOf(number)
    boundaries.indices.map(c => rows.map(row => boundaries(c).rangeId(row(c)))).toArray
  }
}

object Sample {

  /** The minimum number of rows to sample for each file that will be written. */
  private val RowsPerLeaf = 500

  /**
   * The share of each group's rows to draw. It is large enough for the sample to represent every
   * new file.
   *
   * @param rows   number of rows of each group
   * @param leaves number of files that each group's rows are written to
   * @param size   total number of rows to draw, if this is enough for each group
   */
  def fractions(rows: Seq[Long], leaves: Seq[Int], size: Int): Array[Double] = {
    val wanted = size.toDouble / math.max(1L, rows.sum)
    rows.zip(leaves).map { case (count, files) =>
      math.min(1.0, math.max(wanted, files * RowsPerLeaf.toDouble / math.max(1L, count)))
    }.toArray
  }

  /**
   * Draws rows from a scan in one job. The job draws the same rows each time it runs.
   *
   * @param scan      rows with the clustering columns and `partition`
   * @param columns   the clustering columns, as expressions over the scan's output
   * @param fractions share of each table partition's rows to draw, from 0 to 1
   */
  def take(
      scan: SparkPlan,
      columns: Seq[Expression],
      partition: Attribute,
      fractions: Array[Double]): Sample = {
    val wanted = BindReferences.bindReferences(columns :+ partition, scan.output)
    val number = scan.output.indexWhere(_.exprId == partition.exprId)
    val samples = scan.execute().mapPartitions(TaskFunction { (rows: Iterator[InternalRow]) =>
      val random = new SplittableRandom(TaskContext.getPartitionId() * 0x9e3779b97f4a7c15L)
      val project = UnsafeProjection.create(wanted)
      val packed = new ByteArrayOutputStream
      val out = new DataOutputStream(packed)
      rows.filter(row => random.nextDouble() < fractions(row.getInt(number))).foreach { row =>
        val kept = project(row).getBytes
        out.writeInt(kept.length)
        out.write(kept)
      }
      Iterator(packed.toByteArray)
    })
    val drawn =
      JobDescription.step(samples.sparkContext, "sample the clustering columns")(samples.collect())
    val types = columns.map(_.dataType).toArray
    val rows = drawn.iterator.flatMap(unpacked(_, types.length + 1)).toArray
    new Sample(
      rows.map(row => types.indices.map(c => row.get(c, types(c))).toArray[Any]),
      rows.map(_.getInt(types.length)))
  }

  /** Reads rows, each preceded by its length, from a byte array. */
  private def unpacked(packed: Array[Byte], fields: Int): Iterator[UnsafeRow] = {
    val in = ByteBuffer.wrap(packed)
    Iterator.continually(in).takeWhile(_.hasRemaining).map { _ =>
      val row = new UnsafeRow(fields)
      val length = in.getInt()
      row.pointTo(packed, Platform.BYTE_ARRAY_OFFSET + in.position(), length)
      in.position(in.position() + length)
      row
    }
  }
}
