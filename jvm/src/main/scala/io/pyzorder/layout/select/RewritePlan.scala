package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.layout.cells.{Region, Regions}

/**
 * Files that are replaced together by new files in the same folder.
 *
 * @param files   the files to read
 * @param leaves  number of files to write, which is at least 1. It is approximate if there are
 *                several regions
 * @param regions the regions; rows from different regions must not share a file
 */
final case class RewriteGroup(
    folder: String,
    files: Seq[FileStatus],
    leaves: Int,
    regions: Regions = Region)

/**
 * The files that an OPTIMIZE rewrites.
 *
 * @param groups    the files to replace
 * @param clustered files that are already clustered as requested, whether they are replaced or not
 * @param excess    how much data lookups read from the clustered files that a partition keeps,
 *                  divided by how much they would read if these files were rewritten. This is the
 *                  maximum over all partitions; 1 is best
 * @param unpaid    the number of partitions that keep files with other clustering columns, because
 *                  their rewrite would not pay off
 */
final case class RewritePlan(
    groups: Seq[RewriteGroup],
    clustered: Seq[FileStatus],
    excess: Double,
    unpaid: Int = 0) {

  /** The files to replace that are not clustered as requested. */
  def fresh: Seq[FileStatus] = groups.flatMap(_.files).filterNot(clustered.toSet)

  /**
   * Divides the groups, in order, into batches of up to `limit` bytes. A group that exceeds the
   * limit forms its own batch.
   */
  def batches(limit: Long): Seq[Seq[RewriteGroup]] =
    groups.foldLeft(List.empty[List[RewriteGroup]]) {
      case (last :: before, group) if RewritePlan.sizeOf(group :: last) <= limit =>
        (group :: last) :: before
      case (before, group) => List(group) :: before
    }.map(_.reverse).reverse

  /** Sentences for the user about clustered files that are kept. */
  def remark: Option[String] = Some(Seq(unpaidRemark, excessRemark).flatten.mkString(" "))
    .filter(_.nonEmpty)

  private def unpaidRemark: Option[String] =
    if (unpaid == 0 || groups.isEmpty) None
    else {
      val kept = if (unpaid == 1) "1 partition keeps its" else f"$unpaid%,d partitions keep their"
      Some(s"$kept layout, because a rewrite there would not pay off.")
    }

  private def excessRemark: Option[String] =
    if (excess <= RewritePlan.BadlyClustered) None
    else Some(
      f"From the clustered files that are not rewritten, a lookup reads about $excess%.1f times " +
        "as much data as it would after OPTIMIZE … FULL.")
}

object RewritePlan {

  /** The excess above which `remark` returns a sentence. */
  private val BadlyClustered = 1.5

  /** Files of at least this share of the target size are not merged. */
  private val LargeEnough = 0.75

  /**
   * A plan that merges groups of small files. The total size of each group is at most the target
   * size.
   */
  def toCompact(partitions: Seq[PartitionFiles], targetSize: Long): RewritePlan =
    RewritePlan(partitions.flatMap(compacted(_, targetSize)), Nil, 1.0)

  private def compacted(partition: PartitionFiles, targetSize: Long): Seq[RewriteGroup] = {
    var bins = List.empty[List[FileStatus]]
    var room = 0L
    partition.files.filter(_.getLen < targetSize * LargeEnough).foreach { file =>
      if (bins.nonEmpty && file.getLen <= room) bins = (file :: bins.head) :: bins.tail
      else { bins = List(file) :: bins; room = targetSize }
      room -= file.getLen
    }
    bins.reverse.filter(_.length > 1)
      .map(files => RewriteGroup(partition.folder, files.reverse, 1))
  }

  /** A plan that rewrites every file, regardless of how it is clustered. */
  def everything(partitions: Seq[PartitionFiles], targetSize: Long): RewritePlan =
    RewritePlan(partitions.map(whole(_, targetSize)), Nil, 1.0)

  /** A group that contains all files of one partition. */
  private[layout] def whole(partition: PartitionFiles, targetSize: Long): RewriteGroup =
    RewriteGroup(partition.folder, partition.files, filesOf(partition.size, targetSize))

  private def sizeOf(groups: Seq[RewriteGroup]): Long =
    groups.iterator.flatMap(_.files).map(_.getLen).sum

  /** The number of files of about the target size into which `bytes` bytes are divided. */
  private[pyzorder] def filesOf(bytes: Long, targetSize: Long): Int =
    math.max(1L, math.min(Int.MaxValue.toLong, math.round(bytes.toDouble / targetSize))).toInt
}
