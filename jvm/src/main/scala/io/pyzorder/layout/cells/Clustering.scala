package io.pyzorder.layout.cells

import org.apache.spark.unsafe.hash.Murmur3_x86_32

import io.pyzorder.expressions.{Boundaries, InterleaveBits}

/**
 * Assigns each row to a file and to a position in the file. The driver builds the clustering from a
 * sample and broadcasts it. Files are numbered consecutively across all table partitions.
 *
 * @param boundaries the boundaries of each clustering column, across all table partitions
 * @param trees      one tree per table partition
 * @param curve      `zorder`, `hilbert` or `linear`
 */
final class Clustering(
    val boundaries: Array[Boundaries],
    private[layout] val trees: Array[KdTree],
    curve: String)
    extends Serializable {

  private val firstLeaf: Array[Int] = trees.scanLeft(0)(_ + _.leafCount)

  private val bits: Int = InterleaveBits.bitsPerColumn(boundaries.length)

  /** The total number of files in all table partitions. */
  def leafCount: Int = firstLeaf.last

  /** The table partition of each file. */
  def partitionOfLeaf: Array[Int] =
    trees.indices.flatMap(p => Seq.fill(trees(p).leafCount)(p)).toArray

  private val keys: Array[Int] = Clustering.keysOf(leafCount)

  /**
   * A number that Spark's hash partitioning maps to the task that writes the row's file. `turn`
   * varies from row to row (see KdTree.leaf). It is hashed because the rows of a cell may arrive at
   * regular intervals. For example, every other row may belong to the cell. Without hashing, these
   * rows might reach only some of the cell's files.
   */
  def shuffleKey(ids: Array[Int], partition: Int, turn: Int): Int = {
    val scattered = Murmur3_x86_32.hashInt(turn, Clustering.HashSeed) & Int.MaxValue
    keys(firstLeaf(partition) + trees(partition).leaf(ids, scattered))
  }

  /** The row's position in its file, which is never negative. Overwrites `ids`. */
  def place(ids: Array[Int]): Long = {
    var c = 0
    while (c < ids.length) {
      ids(c) = boundaries(c).stretched(ids(c), bits)
      c += 1
    }
    if (curve == "hilbert") HilbertCurve.transpose(ids, bits)
    InterleaveBits.long(ids, bits)
  }
}

object Clustering {

  /**
   * The maximum number of boundaries per column. More boundaries would hardly separate files any
   * better.
   */
  private[pyzorder] val MaxBoundaries = 1 << 16

  /**
   * The maximum number of boundaries per column for tables with few files. It is high enough to
   * sort the rows within a file well.
   */
  private val MinBoundaries = 1 << 13

  /**
   * The maximum number of boundaries per column: 64 for each file, but at least `MinBoundaries` and
   * at most `MaxBoundaries`. A smaller table gets fewer boundaries, because searching the
   * boundaries is faster if they fit into the processor's cache.
   */
  private def boundariesFor(leaves: Int): Int =
    math.max(MinBoundaries, math.min(64L * leaves, MaxBoundaries).toInt)

  /**
   * @param keys   the keys; their expressions are the first columns of `sample`, which may have
   *               more columns
   * @param groups for each table partition, in the order of the partition numbers in `sample`, its
   *               number of files and its regions
   * @param queries the queries by which the table is cut; None if it is cut evenly. They do not
   *               apply to `lexical` keys
   */
  def of(
      keys: ClusteringKeys,
      sample: Sample,
      groups: Seq[(Int, Regions)],
      queries: Option[SampledQueries] = None): Clustering = {
    val limit = boundariesFor(groups.map(_._1).sum)
    val boundaries = keys.expressions.zipWithIndex.map { case (key, number) =>
      sample.boundaries(key.dataType, number, limit, groups.flatMap(_._2.cutsOf(number)))
    }.toArray
    val trees = groups.zipWithIndex.map { case ((leaves, regions), number) =>
      val ids = sample.ids(boundaries, number)
      KdTree.build(
        ids, leaves, keys.lexical, regions,
        (column, value) => boundaries(column).rangeId(value),
        queries.filterNot(_ => keys.lexical).map(_.of(sample.rowsOf(number), ids)))
    }.toArray
    new Clustering(boundaries, trees, keys.curve)
  }

  /** The seed of the hash function that Spark uses to partition rows. */
  private val HashSeed = 42

  /** For each of `count` tasks, a number that Spark's hash partitioning maps to that task. */
  private[pyzorder] def keysOf(count: Int): Array[Int] = {
    val keys = new Array[Int](count)
    val found = new Array[Boolean](count)
    var left = count
    var key = 0
    while (left > 0) {
      val task = Math.floorMod(Murmur3_x86_32.hashInt(key, HashSeed), count)
      if (!found(task)) { found(task) = true; keys(task) = key; left -= 1 }
      key += 1
    }
    keys
  }
}
