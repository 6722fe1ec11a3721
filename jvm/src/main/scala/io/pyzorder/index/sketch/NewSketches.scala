package io.pyzorder.index.sketch

import io.pyzorder.index.model.FileSketches

/**
 * The sketches of a new file, which have not been stored yet.
 *
 * @param byColumn the hashes of each column's values, keyed by IndexedColumn.name
 * @param budget   the maximum size of one column's sketch, as a fraction of the file's size
 */
final case class NewSketches(byColumn: Map[String, CodedHashes], budget: Double)
    extends FileSketches

object NewSketches {

  def of(byColumn: Map[String, CodedHashes], budget: Double): FileSketches =
    if (byColumn.isEmpty) FileSketches.Missing else NewSketches(byColumn, budget)
}
