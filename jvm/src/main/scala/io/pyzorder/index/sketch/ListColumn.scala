package io.pyzorder.index.sketch

import io.pyzorder.index.model.IndexedColumn

/**
 * A column whose sketches are lists of values. It has a single block.
 *
 * @param rices    for each file, one more than the parameter of its Rice code; 0 if it has no list
 * @param checksum the CRC-32 of the block
 */
final class ListColumn(
    column: IndexedColumn,
    val rices: Array[Byte],
    start: Int,
    end: Int,
    val checksum: Int)
    extends SegmentColumn(column, rices.count(_ != 0), start, end) {

  private val positions = SegmentColumn.positions(rices)

  /** Decodes the values. Throws if the column's type has no lists. */
  val bytes: ValueBytes = ValueBytes.of(column.dataType).getOrElse(
    throw new IllegalStateException("a column's type has no lists of values"))

  /**
   * Whether the file has a value that passes a test, or has no list.
   *
   * @param passes the test of the value at a position in the block
   */
  def containsAny(file: Int, block: ListBlock, passes: Int => Boolean): Boolean =
    rices(file) == 0 || {
      val ids = idsOf(file, block)
      var id = ids.next()
      while (id >= 0 && !passes(block.checked(id))) id = ids.next()
      id >= 0
    }

  /**
   * The list of a file, or None if it has none.
   *
   * @param most the maximum length of the list in bytes
   */
  def listOf(file: Int, block: ListBlock, most: Long): Option[ValueList] =
    positionsOf(file, block).map { found =>
      val list = ValueList(block.values, found.map(_.toShort))
      SegmentDirectory.checkLength(list.size, most)
      list
    }

  /** The positions of a file's values in the block, or None if the file has no list. */
  def positionsOf(file: Int, block: ListBlock): Option[Array[Int]] =
    if (rices(file) == 0) None
    else {
      val ids = idsOf(file, block)
      Some(Iterator.continually(ids.next()).takeWhile(_ >= 0).map(block.checked).toArray)
    }

  private def idsOf(file: Int, block: ListBlock): RiceReader =
    block.ids.part(positions(file), 0L, rices(file) - 1)

  override def estimatedBytes: Int = super.estimatedBytes + 5 * rices.length
}

/**
 * The block of a ListColumn.
 *
 * @param values the values that occur in the lists
 * @param ids    the encoded positions of each list's values
 */
final class ListBlock(val values: Array[Array[Byte]], val ids: SketchBlock) {

  /** The hash of each value. */
  lazy val hashes: Array[Long] = values.map(ValueBytes.hashOf)

  /** The position of a value, which is read from a segment. */
  private[sketch] def checked(id: Long): Int = {
    if (id >= values.length) throw new IllegalStateException("a list has an unknown value")
    id.toInt
  }

  /** The approximate heap size in bytes. */
  def estimatedBytes: Int = ids.estimatedBytes + values.map(_.length + 32).sum
}

object ListBlock {

  /** Parses a block. Throws if it is too large, or if it does not contain `files` lists. */
  def of(bytes: Array[Byte], files: Int): ListBlock = {
    val buffer = new SegmentBuffer(bytes)
    val values = Array.fill(buffer.number(ValueDictionary.MaxValues))(buffer.bytes())
    if (values.map(_.length.toLong).sum > 2 * ValueDictionary.MaxBytes)
      throw new IllegalStateException("the values of the lists are too long")
    new ListBlock(values, SketchBlock.of(bytes, files, buffer.position))
  }
}
