package io.pyzorder.index.sketch

/** What is kept of one column's distinct values in one file. */
trait ColumnSketch extends Serializable {

  /** The approximate size in bytes. */
  def size: Long

  /** The sketch, reduced to fit into `most` bytes; None if too little would remain. */
  def limitedTo(most: Long): Option[ColumnSketch]

  /** The hashes of the values; None if there are too many to keep enough bits of each. */
  def hashes: Option[CodedHashes]

  /** The sketch of a file that consists of two parts; None if too little would remain. */
  def union(other: ColumnSketch): Option[ColumnSketch]
}

object ColumnSketch {

  /** What a writer keeps of a column: all distinct values if they are few, or else their hashes. */
  def of(values: DistinctHashes, most: Long): Option[ColumnSketch] = {
    val list = values.values.filter(_.size <= most)
    list.orElse(values.result.flatMap(CodedHashes.of(_, most)))
  }
}
