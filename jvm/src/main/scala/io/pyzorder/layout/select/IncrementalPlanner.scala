package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.layout.cells.{BoxSpace, FileBox, Region}

/**
 * Chooses what an OPTIMIZE rewrites of a table that an earlier one has perhaps clustered: of each
 * partition the files that are not clustered so yet, and what `Merge` finds worth joining them.
 * Where no file is clustered, where all of them may join, or where there are many more files than
 * the bytes make, the partition as a whole.
 *
 * @param targetSize bytes of a file
 * @param factor     how many times the bytes of the new files may be rewritten beside them;
 *                   infinite: partitions are always laid out as a whole
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

  /** The files of a partition that are clustered as wanted, and those that are not. */
  private final class SplitPartition(val partition: PartitionFiles) {
    val (clustered, fresh) = partition.files.partition(known.isClustered)

    /**
     * Whether the files are too small by far: their writer knew less of the rows' size than can be
     * known now, or aimed at smaller files.
     */
    val isSplintered: Boolean =
      partition.files.length > Splintered * RewritePlan.filesOf(partition.size, targetSize)

    /** Whether some clustered files may stay beside new ones. */
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

  /** See `Choice.excess`: 1 where what is clustered has been laid out as a whole already. */
  private def excessOf(staying: Seq[FileStatus]): Double =
    if (staying.isEmpty || factor.isInfinite || !staying.forall(known.isIndexed)) 1.0
    else {
      val space = new BoxSpace(known.types, known.boxes(staying))
      MergeSelection.excess(space, space.files.indices, targetSize, lexical)
    }

  private def sizeOf(files: Seq[FileStatus]): Double = files.iterator.map(_.getLen.toDouble).sum
}

object IncrementalPlanner {

  /** By the settings; throws what they do where one cannot be used. */
  def of(
      known: KnownFiles,
      settings: LayoutSettings,
      targetSize: Long): IncrementalPlanner =
    new IncrementalPlanner(
      known, targetSize,
      // Files of the byte[] order are no boxes that others could be laid out between.
      if (settings.isDirect) Double.PositiveInfinity else settings.rewriteFactor,
      lexical = settings.curve == "linear")

  /** So many times the files that the bytes make are written anew. */
  private val Splintered = 2
}
