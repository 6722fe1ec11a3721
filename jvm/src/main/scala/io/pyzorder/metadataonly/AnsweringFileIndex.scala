package io.pyzorder.metadataonly

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.files.ExaminedPartition

/**
 * Lists the files that an aggregation must read, and computes the aggregates over the other files
 * from the index. A file is not read if its index entry is valid and proves that either none or all
 * of the file's rows pass the filters. If all of the rows pass, the entry must also contain the
 * exact value of every aggregate over the rows.
 */
final class AnsweringFileIndex(scan: IndexedScan, aggregates: Seq[IndexedAggregate])
    extends PlanBoundFileIndex(scan) {

  override protected type Decision = AnsweringFileIndex.Answers

  override protected def identity: Any = functions

  private val functions: IndexedSeq[IndexedAggregate] = aggregates.toIndexedSeq

  /** The types of the fields of `Answers.row`. */
  private[pyzorder] def dataTypes: Seq[DataType] = aggregates.map(_.dataType)

  override protected def decide(): AnsweringFileIndex.Answers = {
    var buffers: IndexedSeq[Any] = functions.map(_.initial)
    var answered = 0
    var inexact = Set.empty[IndexedAggregate]
    val opened = examined().map { partition =>
      partition -> partition.files.map { file =>
        file.known.filter(_.allRows) match {
          case Some(known) =>
            val answers = functions.map(_.of(known, partition.values))
            val unknown = functions.zip(answers).collect { case (function, None) => function }
            inexact ++= unknown
            if (unknown.isEmpty) {
              answered += 1
              buffers = functions.indices.map { i =>
                functions(i).merge(buffers(i), answers(i).get)
              }
            }
            unknown.nonEmpty
          case None => true
        }
      }
    }
    new AnsweringFileIndex.Answers(
      InternalRow.fromSeq(buffers), answered, functions.filter(inexact), opened)
  }
}

object AnsweringFileIndex {

  /**
   * @param row      the aggregation buffers after aggregating all rows of the files whose
   *                 aggregates the index contains
   * @param answered the number of files whose aggregates were taken from the index instead of from
   *                 the files
   * @param inexact  the aggregates that had to be computed by reading files whose rows all pass the
   *                 filters, because the index does not have the exact values
   */
  final class Answers(
      val row: InternalRow,
      override val answered: Int,
      inexact: Seq[IndexedAggregate],
      partitions: IndexedSeq[(ExaminedPartition, IndexedSeq[Boolean])])
      extends PlanBoundFileIndex.Decision(partitions) {
    override def reasons: Seq[String] =
      if (inexact.isEmpty) Nil
      else Seq(s"not exact in the index: ${inexact.mkString(", ")}")
  }
}
