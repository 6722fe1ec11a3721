package io.pyzorder.index.sketch

import java.util.{Arrays, Comparator, TreeMap}

import org.apache.spark.unsafe.types.ByteArray

/**
 * All distinct non-null values of one column in one file. Each value is represented by the bytes
 * that ValueBytes defines.
 *
 * @param dictionary the values of several files, or of this one alone
 * @param ids        the positions of the file's values in the dictionary, in ascending order
 */
final case class ValueList(dictionary: Array[Array[Byte]], ids: Array[Short]) extends ColumnSketch {

  def values: Iterator[Array[Byte]] = ids.iterator.map(dictionary(_))

  override def size: Long = values.map(_.length + 1L).sum

  override def limitedTo(most: Long): Option[ColumnSketch] =
    if (size <= most) Some(this) else hashes.flatMap(_.limitedTo(most))

  override def hashes: Option[CodedHashes] =
    CodedHashes.of(values.map(ValueBytes.hashOf).toArray, Long.MaxValue)

  override def union(other: ColumnSketch): Option[ColumnSketch] = other match {
    case list: ValueList =>
      val both = ValueList.of(values ++ list.values)
      if (both.isSmall) Some(both) else both.hashes
    case _ => other.union(this)
  }

  /** Whether the list is short enough to be kept. */
  private def isSmall: Boolean = ids.length < ValueList.MaxValues && size <= ValueList.MaxBytes
}

object ValueList {

  /** A file's list has fewer values than this. */
  private[sketch] val MaxValues = 256

  /** The maximum size of one file's list. */
  private[sketch] val MaxBytes = 8L << 10

  /** A list of its own values, which may occur several times in `values`. */
  def of(values: Iterator[Array[Byte]]): ValueList = {
    val sorted = ValueDictionary.empty
    values.foreach(value => sorted.put(value, value))
    val distinct = ValueDictionary.of(sorted)
    ValueList(distinct, Array.range(0, distinct.length).map(_.toShort))
  }
}

/** The distinct values of one column in several files, in the unsigned order of their bytes. */
private[sketch] object ValueDictionary {

  /** The maximum number of values, which a `Short` can count. */
  val MaxValues = 4096

  /** The maximum size of all values in bytes. A lookup reads all of them. */
  val MaxBytes = 256 << 10

  private val order: Comparator[Array[Byte]] = (a, b) => ByteArray.compareBinary(a, b)

  def empty: TreeMap[Array[Byte], Array[Byte]] = new TreeMap(order)

  def of(values: TreeMap[Array[Byte], Array[Byte]]): Array[Array[Byte]] =
    values.keySet.toArray(Array.empty[Array[Byte]])

  /**
   * The lists with a common dictionary; None if it would be too large.
   *
   * @param lists each file's list, or None for a file without one
   */
  def common(lists: IndexedSeq[Option[ValueList]]): Option[IndexedSeq[Option[ValueList]]] = {
    val sorted = empty
    var bytes = 0L
    val isSmall = lists.flatten.forall { list =>
      list.values.foreach { value =>
        if (sorted.putIfAbsent(value, value) == null) bytes += value.length + 1
      }
      sorted.size <= MaxValues && bytes <= MaxBytes
    }
    if (!isSmall) None
    else {
      val dictionary = of(sorted)
      def idOf(value: Array[Byte]): Short =
        Arrays.binarySearch(dictionary, value, order).toShort
      Some(lists.map(_.map(list => ValueList(dictionary, list.values.map(idOf).toArray.sorted))))
    }
  }
}
