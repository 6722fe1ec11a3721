package io.pyzorder.index.sketch

import java.util.Arrays

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

import io.pyzorder.index.model.ColumnStatistics

/** Decides whether a column's sketches are worth keeping. */
private[pyzorder] object SketchChoice {

  /** If there are fewer files than this, it is not possible to tell how common a value is. */
  private val FewFiles = 8

  /** The approximate number of files to compare, and of values to look up per file. */
  private val SampledFiles = 64
  private val SampledValues = 16

  /**
   * Sketches pay off only if a lookup with bounds alone would open at least this share of the other
   * files.
   */
  private val LeastShare = 0.05

  /**
   * Whether, with sketches, looking up a value from one file would open far fewer other files than
   * with bounds alone. None if there are too few files to tell. To estimate how many files would
   * be opened with bounds alone, each file's minimum and maximum are looked up in the bounds of the
   * other files. These two values are at the ends of the file's range, so they lie outside other
   * files' bounds more often than most values do. The estimate therefore tends to be too low.
   *
   * @param files the statistics and the sketch of the column in each file
   */
  def pays(dataType: DataType, files: Seq[(ColumnStatistics, ColumnSketch)]): Option[Boolean] =
    if (files.length < FewFiles) None
    else {
      val step = math.max(1, files.length / SampledFiles)
      val sample = files.indices.by(step).map(files)
      val byBounds = shareByBounds(dataType, sample.flatMap(_._1.bounds))
      val hashes = sample.flatMap(_._2.hashes)
      Some(byBounds >= LeastShare && shareBySketches(hashes) <= byBounds / 2)
    }

  private def shareByBounds(dataType: DataType, bounds: Seq[(Any, Any)]): Double = {
    val order = TypeUtils.getInterpretedOrdering(dataType)
    def encloses(bounds: (Any, Any), value: Any): Boolean =
      order.lteq(bounds._1, value) && order.lteq(value, bounds._2)
    share(bounds.indices.flatMap { i =>
        Seq(bounds(i)._1, bounds(i)._2).map(value =>
          bounds.indices.count(j => j != i && encloses(bounds(j), value)))
      }, bounds.length)
  }

  private def shareBySketches(files: IndexedSeq[CodedHashes]): Double = {
    val prefixes = new Array[Array[Long]](files.length)
    Arrays.parallelSetAll[Array[Long]](prefixes, i => files(i).prefixes)
    def holds(file: Int, prefix: Long, bits: Int): Boolean = {
      val common = math.min(bits, files(file).bits)
      val least = prefix >>> (bits - common) << (files(file).bits - common)
      val found = Arrays.binarySearch(prefixes(file), least)
      val next = if (found >= 0) found else -found - 1
      next < prefixes(file).length &&
      prefixes(file)(next) >>> (files(file).bits - common) == prefix >>> (bits - common)
    }
    share(
      files.indices.flatMap { i =>
        val step = math.max(1, prefixes(i).length / SampledValues)
        prefixes(i).indices.by(step).map(v =>
          files.indices.count(j => j != i && holds(j, prefixes(i)(v), files(i).bits)))
      }, files.length)
  }

  /** The average of the counts in `others`, as a share of the `files - 1` other files. */
  private def share(others: Seq[Int], files: Int): Double =
    if (others.isEmpty) 0.0 else others.map(_.toDouble).sum / others.length / (files - 1)
}
