package io.pyzorder.skipping.files

import scala.util.control.NonFatal

import com.google.common.cache.{Cache, CacheBuilder, Weigher}
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.util.SerializableConfiguration

import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.index.store.{IndexStore, IndexWarnings, SnapshotChecks, SnapshotRef}
import io.pyzorder.skipping.predicate.{FileTest, IndexFilter}

/**
 * Evaluates a filter on an index that is too large for the driver. Runs a Spark job with one task
 * per row group. Each task binds the filter to the row group's columns, as the driver does for a
 * whole snapshot, and returns one bit per entry. The bits are cached, because the planning steps of
 * one query evaluate the same filter repeatedly.
 */
private[skipping] object IndexQuery {

  /**
   * @param settings the session's settings, which a predicate might read when a ConstantFileFilter
   *                 evaluates it
   */
  private final case class Question(
      ref: SnapshotRef,
      filter: IndexFilter,
      reading: ColumnReading,
      settings: Map[String, String])

  private val cache: Cache[Question, Bits] =
    CacheBuilder.newBuilder()
      .maximumWeight(64L * 1024 * 1024)
      .weigher[Question, Bits](new Weigher[Question, Bits] {
        override def weigh(question: Question, bits: Bits): Int = bits.bytes
      })
      .build[Question, Bits]()

  /**
   * Returns a test of which entries may match. If the index cannot be read, returns None and logs
   * one warning.
   */
  def apply(
      session: shim.SparkSession,
      ref: SnapshotRef,
      filter: IndexFilter,
      reading: ColumnReading): Option[FileTest] = {
    val question = Question(ref, filter, reading, session.sessionState.conf.getAllConfs)
    try Some(Option(cache.getIfPresent(question)).getOrElse {
        val bits = run(session, question)
        cache.put(question, bits)
        bits
      })
    catch {
      case NonFatal(failure) =>
        IndexWarnings.unusable(ref, failure)
        None
    }
  }

  private def run(session: shim.SparkSession, question: Question): Bits = {
    val context = session.sparkContext
    val hadoopConf = session.sessionState.newHadoopConf()
    val conf = context.broadcast(new SerializableConfiguration(hadoopConf))
    val Question(ref, filter, reading, _) = question
    SnapshotChecks.intact(hadoopConf, ref)
    val groups = IndexStore.rowGroups(hadoopConf, ref)
    val (file, columns) = (ref.dataFile, ref.columns.toList)
    // A predicate that a ConstantFileFilter evaluates might read the session's settings.
    val bits = SQLExecution.withSQLConfPropagated(session) {
      val parts = context.parallelize(groups.zipWithIndex, math.max(1, groups.length))
        .map(TaskFunction((group: (Int, Int)) => {
          val (numFiles, number) = group
          val part = IndexStore.readPart(conf.value.value, file, columns, number, numFiles)
          val test = filter.bind(new SnapshotStatistics(part, reading))
          val bits = new Array[Long]((numFiles + 63) / 64)
          var i = 0
          while (i < numFiles) {
            if (test.mayMatch(i)) bits(i >> 6) |= 1L << (i & 63)
            i += 1
          }
          bits
        }))
      JobDescription.step(context, "query the index")(parts.collect())
    }
    new Bits(groups.scanLeft(0)(_ + _).toArray, bits)
  }

  /** The bit of entry `starts(g) + i` is bit i of group g. */
  private final class Bits(starts: Array[Int], groups: Array[Array[Long]]) extends FileTest {

    def bytes: Int = groups.map(_.length * 8 + 16).sum

    override def mayMatch(file: Int): Boolean = {
      val found = java.util.Arrays.binarySearch(starts, file)
      var group = if (found >= 0) found else -found - 2
      while (starts(group + 1) == file) group += 1 // skip empty row groups
      val i = file - starts(group)
      (groups(group)(i >> 6) & (1L << (i & 63))) != 0
    }
  }
}
