package io.pyzorder.index.memory

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
   * @param segments the name of each file's segment, or an empty string if it has no sketches
   * @param numbers  each file's number in its segment
   */
  def of(segments: Array[String], numbers: Array[Long]): SketchArrays =
    new SketchArrays(InternedValues.of(segments)(identity[String]), PackedLongs.of(numbers))

  def of(files: Array[FileSketches]): SketchArrays = {
    val stored = files.map {
      case FileSketches.Stored(segment, number) => (segment, number.toLong)
      case _ => ("", 0L)
    }
    of(stored.map(_._1), stored.map(_._2))
  }
}
