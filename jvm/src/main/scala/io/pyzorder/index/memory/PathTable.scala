package io.pyzorder.index.memory

import java.nio.charset.StandardCharsets.UTF_8
import java.security.SecureRandom

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

/**
 * Maps the 128-bit hashes of paths to file numbers. The paths themselves are not kept, because they
 * would take up most of an index's memory. Among a million paths, the probability that two have the
 * same hash is about 10^-27. Even then, one file is mistaken for the other only if their sizes and
 * modification times are also equal. Each JVM chooses random seeds for the two halves of the hash,
 * so nobody can construct two paths that collide.
 */
final class PathTable private (hashes: Array[Long], slots: Array[Int]) {

  def length: Int = hashes.length / 2

  /** The number of the file with this path, or -1 if there is none. */
  def find(path: String): Int = {
    val hash = PathTable.hashOf(path.getBytes(UTF_8))
    var slot = PathTable.slotOf(hash.high, slots.length)
    while (slots(slot) >= 0 && !is(slots(slot), hash)) slot = (slot + 1) & (slots.length - 1)
    slots(slot)
  }

  private def is(number: Int, hash: PathTable.Hash): Boolean =
    hashes(2 * number) == hash.high && hashes(2 * number + 1) == hash.low

  /** The approximate heap size in bytes. */
  def estimatedBytes: Long = 8L * hashes.length + 4L * slots.length
}

object PathTable {

  private final class Hash(val high: Long, val low: Long)

  private val (seed, otherSeed) = {
    val random = new SecureRandom()
    (random.nextLong(), random.nextLong())
  }

  private def hashOf(path: Array[Byte]): Hash =
    new Hash(hashOf(path, seed), hashOf(path, otherSeed))

  private def hashOf(bytes: Array[Byte], seed: Long): Long =
    XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, seed)

  /** The slot at which the search for a hash begins. The number of slots is a power of two. */
  private def slotOf(hash: Long, slots: Int): Int = (hash & (slots - 1)).toInt

  /** Collects each file's path, in file order. */
  final class Builder(numFiles: Int) {

    private val hashes = new Array[Long](2 * numFiles)

    /**
     * Sets the path of file i, in UTF-8. A file whose path is not set is never found. Several
     * threads may set the paths of different files at the same time.
     */
    def set(i: Int, path: Array[Byte]): Unit = {
      val hash = hashOf(path)
      hashes(2 * i) = hash.high
      hashes(2 * i + 1) = hash.low
    }

    /** Builds the table. Throws if two files have the same path. */
    def result(): PathTable = {
      // Between a quarter and half of the slots are used.
      val slots = Array.fill(math.max(2, Integer.highestOneBit(math.max(1, numFiles)) * 4))(-1)
      var i = 0
      while (i < numFiles) {
        var slot = slotOf(hashes(2 * i), slots.length)
        while (slots(slot) >= 0 && !same(slots(slot), i)) slot = (slot + 1) & (slots.length - 1)
        if (slots(slot) >= 0 && hasPath(i))
          throw new IllegalStateException("two of its entries have the same path")
        slots(slot) = i
        i += 1
      }
      new PathTable(hashes, slots)
    }

    private def hasPath(i: Int): Boolean = hashes(2 * i) != 0 || hashes(2 * i + 1) != 0

    private def same(a: Int, b: Int): Boolean =
      hashes(2 * a) == hashes(2 * b) && hashes(2 * a + 1) == hashes(2 * b + 1)
  }
}
