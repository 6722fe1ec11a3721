package io.pyzorder.metadataonly

import java.nio.ByteBuffer

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.skipping.files.{ExaminedPartition, KnownFile}

/**
 * Lists the files that an aggregation must read, and computes the aggregates over the other files
 * from the index. A file is not read if its index entry is valid and proves that either none or all
 * of the file's rows pass the filters. If all of the rows pass, the entry must also contain the
 * exact value of every aggregate over the rows, and tell to which groups the rows belong (see
 * GroupingColumn).
 *
 * @param grouping   the columns of GROUP BY and of DISTINCT; empty if all rows form one group
 * @param aggregates the aggregates; empty for DISTINCT
 */
final class AnsweringFileIndex(
    scan: IndexedScan,
    grouping: Seq[GroupingColumn],
    aggregates: Seq[IndexedAggregate])
    extends PlanBoundFileIndex(scan) {

  override protected type Decision = AnsweringFileIndex.Answers

  override protected def identity: Any = (grouping, functions)

  private val functions: IndexedSeq[IndexedAggregate] = aggregates.toIndexedSeq

  /** The types of the fields of `Answers.rows`. */
  private[pyzorder] def dataTypes: Seq[DataType] =
    grouping.map(_.dataType) ++ aggregates.map(_.dataType)

  override protected def decide(): AnsweringFileIndex.Answers = {
    val groups = mutable.LinkedHashMap.empty[Seq[Any], IndexedSeq[Any]]
    if (grouping.isEmpty) groups(Nil) = functions.map(_.initial)
    var answered = 0
    var inexact = Set.empty[IndexedAggregate]
    var bytes = 0L
    def answer(known: KnownFile, partition: InternalRow): Boolean = {
      val keys = groupsOf(known, partition)
      val answers = functions.map(_.of(known, partition))
      if (keys.isEmpty) false
      else if (answers.exists(_.isEmpty)) {
        inexact ++= functions.zip(answers).collect { case (function, None) => function }
        false
      } else {
        val added = keys.filterNot(groups.contains)
        val size = bytes + added.map(AnsweringFileIndex.sizeOf).sum
        val hasRoom = groups.size + added.size <= AnsweringFileIndex.MaxGroups &&
          size <= AnsweringFileIndex.MaxBytes
        if (hasRoom) {
          bytes = size
          for (group <- keys) {
            val buffers = groups.getOrElse(group, functions.map(_.initial))
            groups(group) =
              functions.indices.map(i => functions(i).merge(buffers(i), answers(i).get))
          }
          answered += 1
        }
        hasRoom
      }
    }
    val opened = examined().map { partition =>
      partition -> partition.files.map(file =>
        !file.known.filter(_.allRows).exists(answer(_, partition.values)))
    }
    new AnsweringFileIndex.Answers(
      groups.toSeq.map { case (group, buffers) =>
        InternalRow.fromSeq(group.map(AnsweringFileIndex.valueOf) ++ buffers)
      },
      answered, functions.filter(inexact), opened)
  }

  /** The groups to which the rows of a file belong; empty if they are not known. */
  private def groupsOf(known: KnownFile, partition: InternalRow): Seq[Seq[Any]] = {
    def single: Seq[Option[Seq[Any]]] = grouping.map(_.of(known, partition).map(Seq(_)))
    val values = if (functions.nonEmpty) single else grouping.map(_.allOf(known, partition))
    if (values.exists(_.isEmpty) || values.count(_.exists(_.size > 1)) > 1) Nil
    else values.flatten.foldRight(Seq(Seq.empty[Any])) { (values, rest) =>
      for (value <- values; others <- rest) yield AnsweringFileIndex.keyOf(value) +: others
    }
  }
}

object AnsweringFileIndex {

  /** The maximum number of groups whose aggregates are taken from the index. */
  private val MaxGroups = 10000

  /** The maximum size of the groups' strings and binaries in bytes. */
  private val MaxBytes = 16L << 20

  private def sizeOf(group: Seq[Any]): Long = group.map {
    case string: UTF8String => string.numBytes.toLong
    case binary: ByteBuffer => binary.capacity.toLong
    case _ => 0L
  }.sum

  /** An object that equals another one if the values are equal, which is not true of arrays. */
  private def keyOf(value: Any): Any = value match {
    case binary: Array[Byte] => ByteBuffer.wrap(binary)
    case other => other
  }

  private def valueOf(key: Any): Any = key match {
    case binary: ByteBuffer => binary.array
    case other => other
  }

  /**
   * @param rows     for each group, its values and the aggregation buffers after aggregating all
   *                 rows of the files whose aggregates the index contains
   * @param answered the number of files whose aggregates were taken from the index instead of from
   *                 the files
   * @param inexact  the aggregates that had to be computed by reading files whose rows all pass the
   *                 filters, because the index does not have the exact values
   */
  final class Answers(
      val rows: Seq[InternalRow],
      override val answered: Int,
      inexact: Seq[IndexedAggregate],
      partitions: IndexedSeq[(ExaminedPartition, IndexedSeq[Boolean])])
      extends PlanBoundFileIndex.Decision(partitions) {
    override def reasons: Seq[String] =
      if (inexact.isEmpty) Nil
      else Seq(s"not exact in the index: ${inexact.mkString(", ")}")
  }
}
