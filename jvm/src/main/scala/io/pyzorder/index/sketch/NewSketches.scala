package io.pyzorder.index.sketch

import io.pyzorder.index.model.FileSketches

/**
 * The sketches of a new file, which have not been stored yet.
 *
 * @param byColumn each column's sketch, keyed by IndexedColumn.name
 * @param budget   the maximum size of one column's sketch, as a fraction of the file's size
 */
final case class NewSketches(byColumn: Map[String, ColumnSketch], budget: Double)
    extends FileSketches

object NewSketches {

  def of(byColumn: Map[String, ColumnSketch], budget: Double): FileSketches =
    if (byColumn.isEmpty) FileSketches.Missing else NewSketches(byColumn, budget)
}
