package io.pyzorder.answers

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

import io.pyzorder.skipping.{ExaminedFile, ExaminedPartition, Verdict}

/**
 * Lists the files that an aggregation must read, and answers for the others. A file needs no
 * reading when it is as the index knows it and either no row of it passes the filters, or all do
 * and the index tells every aggregate of them exactly.
 */
final class AnsweringFileIndex(scan: IndexedScan, aggregates: Seq[IndexedAggregate])
    extends ExaminingFileIndex(scan) {

  override protected type Decision = AnsweringFileIndex.Answers

  override protected def identity: Any = functions

  private val functions: IndexedSeq[IndexedAggregate] = aggregates.toIndexedSeq

  /** Types of the answer's fields. */
  private[answers] def dataTypes: Seq[DataType] = aggregates.map(_.dataType)

  override protected def decide(): AnsweringFileIndex.Answers = {
    var buffers: IndexedSeq[Any] = functions.map(_.initial)
    var answered = 0
    val opened = examined().map { partition =>
      partition -> partition.files.map { file =>
        file.verdict != Verdict.Skipped && (answerOf(file, partition.values) match {
          case Some(answer) =>
            answered += 1
            buffers = functions.zip(buffers.zip(answer)).map {
              case (aggregate, (buffer, value)) => aggregate.merge(buffer, value)
            }
            false
          case None => true
        })
      }
    }
    new AnsweringFileIndex.Answers(InternalRow.fromSeq(buffers), answered, opened)
  }

  private def answerOf(file: ExaminedFile, partition: InternalRow): Option[IndexedSeq[Any]] =
    file.known.filter(_.allRows).flatMap { known =>
      val answers = functions.map(_.of(known, partition))
      if (answers.contains(None)) None else Some(answers.flatten)
    }
}

object AnsweringFileIndex {

  /**
   * @param row      the aggregation buffers after all rows of the files that are answered for
   * @param answered number of these files
   */
  final class Answers(
      val row: InternalRow,
      override val answered: Int,
      partitions: IndexedSeq[(ExaminedPartition, IndexedSeq[Boolean])])
      extends ExaminingFileIndex.Decision(partitions)
}
