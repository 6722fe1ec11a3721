package io.pyzorder.index.model

/** The sketches of a data file's columns. */
trait FileSketches extends Serializable

object FileSketches {

  /** The file has no sketches. */
  case object Missing extends FileSketches

  /**
   * The file's sketches are in a segment, where `number` identifies the file.
   *
   * @param segment the name of the segment's file
   */
  final case class Stored(segment: String, number: Int) extends FileSketches
}
