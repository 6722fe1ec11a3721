package io.pyzorder.index.collect

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.model.IndexedColumn

/**
 * The columns for which sketches of new files are collected.
 *
 * @param names  the columns' names (IndexedColumn.name)
 * @param budget the maximum size of one column's sketch, as a fraction of the file's size
 * @param bytes  the maximum size of a file's sketches when they are sent to the driver
 */
final case class SketchedColumns(
    names: Set[String],
    budget: Double,
    bytes: Long = SketchedColumns.BytesPerFile) {

  /**
   * Whether, in a table of this size, one column's sketches are small enough to be sent to the
   * driver.
   */
  def allows(size: Long): Boolean = size * budget <= SketchedColumns.MostBytes

  /** The same columns, but with the driver's memory for sketches divided among `count` files. */
  def inFiles(count: Int): SketchedColumns =
    copy(bytes = SketchedColumns.MostBytes / math.max(1, count))

  /**
   * The maximum size of one column's sketch when it is sent to the driver.
   *
   * @param fileSize the size of the file, if it is known
   */
  private[collect] def bytesPerColumn(fileSize: Option[Long]): Long =
    math.min(
      bytes / math.max(1, names.size),
      fileSize.fold(Long.MaxValue)(size => (size * budget).toLong))

  /** The maximum number of hashes that are collected for one column of a file. */
  private[collect] def hashesPerColumn: Int = SketchedColumns.MostHashes / math.max(1, names.size)

  /** Whether a file of this size may have a sketch of the column. */
  private[collect] def fits(column: IndexedColumn, size: Long): Boolean =
    names(column.name) && size * budget >= SketchedColumns.LeastBytes
}

object SketchedColumns {

  /** No column gets sketches. */
  val None: SketchedColumns = SketchedColumns(Set.empty, 0.0)

  /**
   * A file has sketches only if the budget allows at least this many bytes per sketch. Smaller
   * files have too few distinct values to benefit from sketches.
   */
  private val LeastBytes = 16

  /** The maximum number of hashes that are collected for all columns of one file. */
  private val MostHashes = 1 << 20

  /**
   * The maximum size of all sketches that one command sends to the driver: an eighth of the
   * driver's memory, but at most a quarter of the default of `spark.driver.maxResultSize`.
   */
  private val MostBytes =
    math.max(32L << 20, math.min(256L << 20, Runtime.getRuntime.maxMemory / 8))

  /** The maximum size of one file's sketches if the number of files is not known. */
  private val BytesPerFile = 128L << 10

  /** The columns with these names, if the settings allow sketches. */
  def of(names: Seq[String], conf: SQLConf, properties: Map[String, String]): SketchedColumns = {
    val budget = ZOrderConf.sketchBudget.get(conf, properties)
    if (budget == 0) None else SketchedColumns(names.toSet, budget)
  }
}
