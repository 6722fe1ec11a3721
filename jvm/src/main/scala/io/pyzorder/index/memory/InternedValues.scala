package io.pyzorder.index.memory

import java.util.{HashMap => JHashMap}

import scala.collection.mutable.ArrayBuffer

/**
 * A property that has one value per file but only a few distinct values. Equal values share one
 * object.
 */
final class InternedValues[T](numbers: PackedLongs, values: IndexedSeq[T]) {

  def apply(i: Int): T = values(numbers(i).toInt)

  /** The approximate heap size in bytes, excluding the distinct values themselves. */
  def estimatedBytes: Long = numbers.estimatedBytes
}

object InternedValues {

  /** Collects one value per file, in file order. */
  final class Builder[K, T](numFiles: Int, valueOf: K => T) {

    private val numbers = new Array[Long](numFiles)
    private val known = new JHashMap[K, Integer]()
    private val values = ArrayBuffer.empty[T]
    private var last: K = _
    private var lastNumber = -1

    /** Sets the value of file i to the value that `key` represents. */
    def set(i: Int, key: K): Unit = {
      if (lastNumber < 0 || key != last) {
        lastNumber = known.computeIfAbsent(key,
          (k: K) => {
            values += valueOf(k)
            values.length - 1
          })
      }
      last = key // even if the keys are equal, because comparing an object to itself is faster
      numbers(i) = lastNumber.toLong
    }

    def result(): InternedValues[T] =
      new InternedValues(PackedLongs.of(numbers), values.toIndexedSeq)
  }

  /** The values represented by `keys`, which has one element per file. */
  def of[K, T](keys: Array[K])(valueOf: K => T): InternedValues[T] = {
    val builder = new Builder[K, T](keys.length, valueOf)
    keys.indices.foreach(i => builder.set(i, keys(i)))
    builder.result()
  }
}
