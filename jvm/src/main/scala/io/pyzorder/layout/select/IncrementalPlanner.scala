package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.layout.cells.{BoxSpace, FileBox, Region}

/**
 * Chooses the files that an OPTIMIZE rewrites in a table that may already be clustered. In each
 * partition, these are the files that are not clustered as requested, and the clustered files that,
 * according to `MergeSelection`, are worth rewriting with them. The whole partition is rewritten if
 * no file is clustered, if the budget covers all clustered files, if the index lacks the bounds of
 * a clustered file, or if there are many more files than the partition's size requires.
 *
 * @param targetSize the target size of a new file in bytes
 * @param factor     the amount of clustered data that may be rewritten, as a multiple of the new
 *                   files' size. If it is infinite, partitions with new files are always rewritten
 *                   as a whole
 * @param lexical    see KdTree.build
 */
final class IncrementalPlanner(
    known: KnownFiles,
    targetSize: Long,
    factor: Double,
    lexical: Boolean) {
  import IncrementalPlanner._

  def choose(partitions: Seq[PartitionFiles]): RewritePlan = {
    val split = partitions.map(new SplitPartition(_))
    val merged = split.filter(_.isMerged)
    val fresh = merged.flatMap(_.fresh)
    val boxes = fresh.map(_.getPath).zip(known.boxes(fresh)).toMap
    val groups = split.flatMap { partition =>
      if (partition.fresh.isEmpty && !partition.isSplintered) None
      else if (partition.isMerged) {
        Some(merge(partition, partition.fresh.map(file => boxes(file.getPath))))
      } else Some(RewritePlan.whole(partition.partition, targetSize))
    }
    val chosen = groups.flatMap(_.files).toSet
    val excess = split.map(partition => excessOf(partition.clustered.filterNot(chosen)))
    RewritePlan(groups, split.flatMap(_.clustered), (1.0 +: excess).max)
  }

  /** The files of a partition that are clustered as requested, and the files that are not. */
  private final class SplitPartition(val partition: PartitionFiles) {
    val (clustered, fresh) = partition.files.partition(known.isClustered)

    /**
     * Whether the files are much too small, for example because their writer misjudged the size of
     * the rows or used a smaller target size.
     */
    val isSplintered: Boolean =
      partition.files.length > Splintered * RewritePlan.filesOf(partition.size, targetSize)

    /** Whether some clustered files may be kept when new files are laid out. */
    val isMerged: Boolean =
      !isSplintered && clustered.nonEmpty && fresh.nonEmpty &&
        factor * sizeOf(fresh) < sizeOf(clustered) && clustered.forall(known.isIndexed)
  }

  private def merge(split: SplitPartition, fresh: Seq[FileBox]): RewriteGroup = {
    val space = new BoxSpace(known.types, (fresh ++ known.boxes(split.clustered)).toIndexedSeq)
    val (freshNumbers, clusteredNumbers) = space.files.indices.splitAt(fresh.length)
    val merge = MergeSelection.choose(
      space, freshNumbers, clusteredNumbers, targetSize, factor, lexical)
    val joining = merge.files.map(number => split.clustered(number - fresh.length))
    val files = (split.fresh ++ joining).sortBy(_.getPath)
    RewriteGroup(
      split.partition.folder, files, RewritePlan.filesOf(sizeOf(files).toLong, targetSize),
      if (joining.length < split.clustered.length) merge.regions else Region)
  }

  /**
   * See `RewritePlan.excess`; 1 if no files are kept or if the excess cannot be estimated. It
   * assumes files of at least `LeastUseful` bytes, because smaller ones do not make lookups faster.
   */
  private def excessOf(staying: Seq[FileStatus]): Double =
    if (staying.isEmpty || factor.isInfinite || !staying.forall(known.isIndexed)) 1.0
    else {
      val space = new BoxSpace(known.types, known.boxes(staying))
      val size = math.max(targetSize, LayoutVerdict.LeastUseful)
      MergeSelection.excess(space, space.files.indices, size, lexical)
    }

  private def sizeOf(files: Seq[FileStatus]): Double = files.iterator.map(_.getLen.toDouble).sum
}

object IncrementalPlanner {

  /** A planner with these settings. Throws if a setting is invalid. */
  def of(
      known: KnownFiles,
      settings: LayoutSettings,
      targetSize: Long): IncrementalPlanner =
    new IncrementalPlanner(
      known, targetSize,
      // A file written by the direct method covers a range of byte[] z-values, which is not a box,
      // so new rows cannot be laid out around it.
      if (settings.isDirect) Double.PositiveInfinity else settings.rewriteFactor,
      lexical = settings.curve == "linear")

  /**
   * A partition is rewritten as a whole if it has more than this many times the number of files
   * that its size requires.
   */
  private val Splintered = 2
}
