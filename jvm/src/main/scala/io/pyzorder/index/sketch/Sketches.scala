package io.pyzorder.index.sketch

import io.pyzorder.index.model.{FileSketches, IndexedColumn}

/** Looks up values in the sketches of files. */
trait Sketches {

  /**
   * Whether a column of the file may contain a value with one of these hashes. Always true if the
   * file has no usable sketch of the column.
   *
   * @param hashes the hashes, in unsigned order
   */
  def mayHold(file: FileSketches, column: IndexedColumn, hashes: Array[Long]): Boolean

  /**
   * Tests files with a list of the column's values. The returned function is false only for a file
   * whose list contains no value that passes the test. None if no file can have a list of the
   * column.
   *
   * @param test   identifies the test: equal objects stand for the same test
   * @param passes the test; its argument is never null
   */
  def someValue(
      column: IndexedColumn,
      test: AnyRef,
      passes: Any => Boolean): Option[FileSketches => Boolean]

  /**
   * Reads the list of a file's column: its distinct values, without null. The returned function is
   * None for a file without a usable list. None if no file can have a list of the column.
   */
  def valuesOf(column: IndexedColumn): Option[FileSketches => Option[Seq[Any]]]

  /** How many files have a sketch of the column, and of which size. */
  def sizeOf(column: IndexedColumn): SketchSize
}

/**
 * @param files the number of files with a sketch of a column
 * @param lists how many of these sketches are lists of values
 * @param bytes the size of all these sketches
 */
final case class SketchSize(files: Int, lists: Int, bytes: Long)

object Sketches {

  /** Used if no file has sketches. */
  object None extends Sketches {
    override def mayHold(
        file: FileSketches,
        column: IndexedColumn,
        hashes: Array[Long]): Boolean = true

    override def someValue(
        column: IndexedColumn,
        test: AnyRef,
        passes: Any => Boolean): Option[FileSketches => Boolean] = Option.empty

    override def valuesOf(column: IndexedColumn): Option[FileSketches => Option[Seq[Any]]] =
      Option.empty

    override def sizeOf(column: IndexedColumn): SketchSize = SketchSize(0, 0, 0L)
  }

  /** Whether the hash is among hashes in unsigned order. */
  def contains(hashes: Array[Long], hash: Long): Boolean = {
    var low = 0
    var high = hashes.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (java.lang.Long.compareUnsigned(hashes(middle), hash) < 0) low = middle + 1
      else high = middle
    }
    low < hashes.length && hashes(low) == hash
  }

  /** The hashes in unsigned order. */
  def sorted(hashes: Array[Long]): Array[Long] =
    hashes.map(_ ^ Long.MinValue).sorted.map(_ ^ Long.MinValue)
}
