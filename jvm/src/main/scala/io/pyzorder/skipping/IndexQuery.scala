package io.pyzorder.skipping

import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder, Weigher}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.TaskFunction
import io.pyzorder.index.{IndexStore, SnapshotRef}

/**
 * A filter put to an index that is too large for the driver. A Spark job binds it to the columns of
 * one row group a task, as the driver does to those of a whole snapshot, and gives back one bit an
 * entry. The bits are kept, for one query is planned in several steps that ask the same.
 */
private[skipping] object IndexQuery {

  private final case class Question(ref: SnapshotRef, filter: IndexFilter, reading: ColumnReading)

  private val cache: Cache[Question, Array[Array[Long]]] =
    CacheBuilder.newBuilder()
      .maximumWeight(64L * 1024 * 1024)
      .weigher[Question, Array[Array[Long]]](new Weigher[Question, Array[Array[Long]]] {
        override def weigh(question: Question, bits: Array[Array[Long]]): Int =
          math.min(Int.MaxValue.toLong, bits.map(_.length * 8L + 16).sum).toInt
      })
      .build[Question, Array[Array[Long]]]()

  /** Which entries may match; None: the index cannot be read (one warning). */
  def apply(
      session: shim.SparkSession,
      ref: SnapshotRef,
      filter: IndexFilter,
      reading: ColumnReading): Option[FileTest] = {
    val question = Question(ref, filter, reading)
    try {
      val groups = IndexStore.rowGroups(session.sessionState.newHadoopConf(), ref)
      val known = Option(cache.getIfPresent(question))
      val bits = known.getOrElse(run(session, question, groups))
      if (known.isEmpty) cache.put(question, bits)
      Some(new Bits(groups.scanLeft(0)(_ + _).toArray, bits))
    } catch {
      case NonFatal(failure) =>
        IndexStore.warn(ref, failure)
        None
    }
  }

  private def run(
      session: shim.SparkSession,
      question: Question,
      groups: Seq[Int]): Array[Array[Long]] = {
    val context = session.sparkContext
    val conf = context.broadcast(
      new SerializableConfiguration(session.sessionState.newHadoopConf()))
    val Question(ref, filter, reading) = question
    val (file, columns) = (IndexStore.dataFile(ref), ref.columns.toList)
    // A predicate evaluated on files of one value may ask for the session's settings.
    SQLExecution.withSQLConfPropagated(session) {
      context.parallelize(groups.zipWithIndex, math.max(1, groups.length))
        .map(TaskFunction((group: (Int, Int)) => {
          val (numFiles, number) = group
          val part = IndexStore.readPart(conf.value.value, file, columns, number, numFiles)
          val test = filter.bind(new SnapshotFacts(part, reading))
          val bits = new Array[Long]((numFiles + 63) / 64)
          var i = 0
          while (i < numFiles) {
            if (test.mayMatch(i)) bits(i >> 6) |= 1L << (i & 63)
            i += 1
          }
          bits
        }))
        .collect()
    }
  }

  /** Entry `starts(g) + i` is bit i of group g. */
  private final class Bits(starts: Array[Int], groups: Array[Array[Long]]) extends FileTest {
    override def mayMatch(file: Int): Boolean = {
      val found = java.util.Arrays.binarySearch(starts, file)
      var group = if (found >= 0) found else -found - 2
      while (starts(group + 1) == file) group += 1 // row groups without rows
      val i = file - starts(group)
      (groups(group)(i >> 6) & (1L << (i & 63))) != 0
    }
  }
}
