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

  /** The number of files with a sketch of the column, and the size of these sketches in bytes. */
  def sizeOf(column: IndexedColumn): (Int, Long)
}

object Sketches {

  /** Used if no file has sketches. */
  object None extends Sketches {
    override def mayHold(
        file: FileSketches,
        column: IndexedColumn,
        hashes: Array[Long]): Boolean = true

    override def sizeOf(column: IndexedColumn): (Int, Long) = (0, 0L)
  }

  /** The hashes in unsigned order. */
  def sorted(hashes: Array[Long]): Array[Long] =
    hashes.map(_ ^ Long.MinValue).sorted.map(_ ^ Long.MinValue)
}
