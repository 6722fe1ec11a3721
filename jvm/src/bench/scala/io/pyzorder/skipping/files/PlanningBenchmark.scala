package io.pyzorder.skipping.files

import java.nio.file.Files

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, GreaterThan}
import org.apache.spark.sql.catalyst.expressions.{LessThan, Literal}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{IntegerType, LongType, StructType, TimestampType}

import io.pyzorder.common.Staleness
import io.pyzorder.index.model.{ColumnStatistics, FileEntry, IndexedColumn, ReadSettings}
import io.pyzorder.index.store.{IndexPublisher, IndexStore, SnapshotRef}
import io.pyzorder.storage.{ExactFileIndex, TableFolder}

/**
 * The measurements for benchmarks/planning.py. They use a synthetic table of `numFiles` files,
 * whose index has four columns: two INT, one BIGINT and one TIMESTAMP. The files need not exist.
 */
final class PlanningBenchmark(session: shim.SparkSession, numFiles: Int) {

  private val root = new Path(Files.createTempDirectory("planning").toUri)
  private val folder = new TableFolder(root)
  private val types = Seq(
    "customer" -> IntegerType, "day" -> IntegerType, "item" -> LongType, "at" -> TimestampType)
  private val schema = types.foldLeft(new StructType) { case (s, (name, t)) => s.add(name, t) }
  private val columns = types.map { case (name, t) => IndexedColumn(Seq(name), t) }
  private val settings = ReadSettings.of(session, Map.empty, new StructType).fingerprint
  private val side = math.max(1, math.ceil(math.sqrt(numFiles.toDouble)).toInt)

  /** The name of file i. It is about as long as a name that OPTIMIZE generates. */
  private def name(i: Int): String =
    f"part-$i%07d-3f0e6a52-8a58-4b0c-9f0e-${i * 7919L % 1000000}%06d-zorder.snappy.parquet"

  private val files: Array[FileStatus] = Array.tabulate(numFiles) { i =>
    new FileStatus(size(i), false, 1, 1L << 27, time(i), new Path(root, name(i)))
  }

  private val listing = list()

  private def pruner =
    new FilePruner(session, "made_up", schema, Map.empty, Map.empty, new EvaluatedPartitions)

  private val ref: SnapshotRef = IndexPublisher.publish(
    session, folder, _ => columns, _ => (0 until numFiles).map(entry))

  private def size(i: Int): Long = 250000000L + i * 37L % 20000000L

  private def time(i: Int): Long = 1760000000000L + i * 13L % 3600000L

  /**
   * The index entry of file i. The files form a grid over customers and items, in which file i
   * covers the cell (i / side, i % side).
   */
  private def entry(i: Int): FileEntry = {
    def range(from: Any, to: Any): ColumnStatistics = ColumnStatistics(
      Some((from, to)), exact = true, Some(0L), nanSeen = false, empty = false,
      settingsDependent = false)
    val (row, column) = (i / side, i % side)
    FileEntry(
      name(i), size(i), time(i), 3000000L + i % 1000, Seq("customer", "item"), settings,
      Map(
        "customer" -> range(row * 100, row * 100 + 99),
        "day" -> range(20000 + i % 7, 20300 + i % 11),
        "item" -> range(column * 1000000L, column * 1000000L + 999999L),
        "at" -> range(1700000000000000L + i, 1760000000000000L + i * 1000L)))
  }

  /** Milliseconds to load the index, including all four columns, from its file. */
  def coldLoad(): Double = best(3) { () =>
    val snapshot = IndexStore.read(session, ref)
    columns.foreach(column => snapshot.column(column.path))
  }

  /** The cache's estimate of the loaded index's size in bytes. */
  def estimatedBytes(): Long = {
    val snapshot = IndexStore.load(session, ref).get
    columns.foreach(column => snapshot.column(column.path))
    snapshot.estimatedBytes
  }

  /**
   * Milliseconds to prune a new listing by two columns. The time includes finding every file's
   * index entry.
   */
  def matching(): Double = {
    val unseen = Iterator.fill(3)(list()).toSeq.iterator
    best(3)(() => prune(unseen.next()))
  }

  /** Milliseconds to prune a listing by two columns after the same listing has been pruned once. */
  def pruning(): Double = best(30)(() => prune(listing))

  /** The number of files that remain after pruning. */
  def selected(): Int = prune(listing)

  /** The number of row groups in the index file. */
  def rowGroups(): Int = IndexStore.rowGroups(session.sessionState.newHadoopConf(), ref).length

  private def list(): ListedPartitions = {
    val index = new ExactFileIndex(root, new StructType, Seq((InternalRow.empty, files.toSeq)))
    ListedPartitions(
      index, index.listFiles(Nil, Nil).toIndexedSeq, isFresh = true, asOf = None, Staleness.none)
  }

  private def prune(listed: ListedPartitions): Int =
    pruner.prune(listed, Seq(ref), filters, Nil, Nil, asked = true)._2.selected

  /** Filters that each select a tenth of one column's range. */
  private lazy val filters: Seq[Expression] = {
    val customer = AttributeReference("customer", IntegerType)()
    val item = AttributeReference("item", LongType)()
    Seq(
      GreaterThan(customer, Literal(side * 40)), LessThan(customer, Literal(side * 50)),
      GreaterThan(item, Literal(side * 400000L)), LessThan(item, Literal(side * 500000L)))
  }

  private def best(times: Int)(run: () => Any): Double = {
    var least = Double.MaxValue
    for (_ <- 1 to times) {
      val start = System.nanoTime()
      PlanningBenchmark.sink = run()
      least = math.min(least, (System.nanoTime() - start) / 1e6)
    }
    least
  }
}

object PlanningBenchmark {

  /**
   * The runs assign their results to this field so that the compiler does not eliminate them as
   * dead code.
   */
  @volatile var sink: Any = _
}
