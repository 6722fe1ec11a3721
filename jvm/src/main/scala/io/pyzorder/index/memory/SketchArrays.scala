package io.pyzorder.index.memory

import scala.collection.mutable

import io.pyzorder.index.model.FileSketches

/** The location of each file's sketches. */
final class SketchArrays private (segments: InternedValues[String], numbers: PackedLongs) {

  def apply(i: Int): FileSketches =
    if (segments(i).isEmpty) FileSketches.Missing
    else FileSketches.Stored(segments(i), numbers(i).toInt)

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long = segments.estimatedBytes + numbers.estimatedBytes
}

object SketchArrays {

  /**
   * Builds the arrays. If several files refer to the same sketches, only the first of these files
   * keeps them. Otherwise, a small forged index could make a query decode one sketch any number of
   * times.
   *
   * @param segments the name of each file's segment, or an empty string if it has no sketches
   * @param numbers  each file's number in its segment
   */
  def of(segments: Array[String], numbers: Array[Long]): SketchArrays = {
    val seen = mutable.Map[String, mutable.BitSet]()
    val own = segments.indices.iterator.map { i =>
      val isFirst = segments(i).nonEmpty && numbers(i) >= 0 && numbers(i) < MaxNumber &&
        seen.getOrElseUpdate(segments(i), mutable.BitSet()).add(numbers(i).toInt)
      if (isFirst) segments(i) else ""
    }.toArray
    new SketchArrays(InternedValues.of(own)(identity[String]), PackedLongs.of(numbers))
  }

  /**
   * An upper limit on file numbers. A segment has at most this many bytes, and each of its files
   * takes at least one byte.
   */
  private val MaxNumber = 64 << 20

  def of(files: Array[FileSketches]): SketchArrays = {
    val stored = files.map {
      case FileSketches.Stored(segment, number) => (segment, number.toLong)
      case _ => ("", 0L)
    }
    of(stored.map(_._1), stored.map(_._2))
  }
}
