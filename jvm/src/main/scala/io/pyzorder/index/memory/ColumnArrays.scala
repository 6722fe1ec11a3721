package io.pyzorder.index.memory

import org.apache.spark.sql.types.DataType

import io.pyzorder.index.model.{ColumnStatistics, IndexSchema}

/**
 * One column's statistics for all files in a snapshot. File i is at index i of every array. See
 * ColumnStatistics for the meaning of the values.
 *
 * @param dataType   the type of the bounds
 * @param flags      for each file, a combination of the flags that ColumnArrays defines
 * @param nullCounts the number of nulls in each file, or -1 if unknown
 * @param bounds     the minimum and maximum of each file, defined only if `bounded(i)`
 */
final class ColumnArrays(
    val dataType: DataType,
    val flags: Array[Byte],
    val nullCounts: PackedLongs,
    val bounds: BoundArrays) {

  def numFiles: Int = flags.length

  def bounded(i: Int): Boolean = (flags(i) & ColumnArrays.Bounded) != 0

  def exact(i: Int): Boolean = (flags(i) & ColumnArrays.Exact) != 0

  def nanSeen(i: Int): Boolean = (flags(i) & ColumnArrays.NanSeen) != 0

  def empty(i: Int): Boolean = (flags(i) & ColumnArrays.Empty) != 0

  def settingsDependent(i: Int): Boolean = (flags(i) & ColumnArrays.SettingsDependent) != 0

  /** The number of nulls in file i, or -1 if unknown. */
  def nullCount(i: Int): Long = nullCounts(i)

  /** The minimum of file i in Catalyst's internal representation. Defined only if `bounded(i)`. */
  def minOf(i: Int): Any = bounds.value(i, least = true, dataType)

  /** The maximum of file i in Catalyst's internal representation. Defined only if `bounded(i)`. */
  def maxOf(i: Int): Any = bounds.value(i, least = false, dataType)

  /** The statistics of file i. */
  def statistics(i: Int): ColumnStatistics = ColumnStatistics(
    bounds = if (bounded(i)) Some((minOf(i), maxOf(i))) else None,
    exact = exact(i),
    nullCount = if (nullCounts(i) < 0) None else Some(nullCounts(i)),
    nanSeen = nanSeen(i),
    empty = empty(i),
    settingsDependent = settingsDependent(i))

  /**
   * A copy without bounds but with null counts. With this copy, a predicate on values can skip only
   * files in which every value is null.
   */
  def withoutBounds: ColumnArrays = {
    val kept = ColumnArrays.Empty | ColumnArrays.SettingsDependent
    withFlags(flag => ((flag & kept) | unknown).toByte)
  }

  /** A copy without the statistics of files in which the column contains only nulls and NaN. */
  def withoutAllNull: ColumnArrays = {
    val counts = Array.tabulate(numFiles)(i => if (empty(i)) -1L else nullCounts(i))
    val changed = withFlags(flag =>
      if ((flag & ColumnArrays.Empty) != 0) unknown else flag)
    new ColumnArrays(dataType, changed.flags, PackedLongs.of(counts), bounds)
  }

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long = flags.length + nullCounts.estimatedBytes + bounds.estimatedBytes

  /** The flags of a file without statistics. */
  private def unknown: Byte = if (IndexSchema.hasNan(dataType)) ColumnArrays.NanSeen else 0

  private def withFlags(change: Byte => Byte): ColumnArrays = {
    val changed = new Array[Byte](flags.length)
    var i = 0
    while (i < flags.length) {
      changed(i) = change(flags(i))
      i += 1
    }
    new ColumnArrays(dataType, changed, nullCounts, bounds)
  }
}

object ColumnArrays {

  /** The minimum and maximum, or bounds that enclose them, are known. */
  val Bounded: Byte = 1

  /** Both bounds are values in the file. */
  val Exact: Byte = 2

  /** The column may contain NaN. */
  val NanSeen: Byte = 4

  /** The column provably contains only nulls and NaN. */
  val Empty: Byte = 8

  /** The bounds are valid only for scans with the entry's temporal read settings. */
  val SettingsDependent: Byte = 16

  /** The flags of one file's statistics. */
  private[index] def flagsOf(statistics: ColumnStatistics, hasNan: Boolean): Byte = {
    var flags = 0
    if (statistics.bounds.isDefined) flags |= Bounded
    if (statistics.exact) flags |= Exact
    if (statistics.nanSeen && hasNan) flags |= NanSeen
    if (statistics.empty) flags |= Empty
    if (statistics.settingsDependent) flags |= SettingsDependent
    flags.toByte
  }

  /** The arrays for `statistics`, which has one element per file. */
  def of(dataType: DataType, statistics: Array[ColumnStatistics]): ColumnArrays = {
    val bounds = BoundArrays.builder(dataType, statistics.length)
    val flags = new Array[Byte](statistics.length)
    val nullCounts = new Array[Long](statistics.length)
    var i = 0
    while (i < statistics.length) {
      flags(i) = flagsOf(statistics(i), IndexSchema.hasNan(dataType))
      nullCounts(i) = statistics(i).nullCount.getOrElse(-1L)
      statistics(i).bounds.foreach { case (least, greatest) => bounds.set(i, least, greatest) }
      i += 1
    }
    new ColumnArrays(dataType, flags, PackedLongs.of(nullCounts), bounds.result())
  }
}
