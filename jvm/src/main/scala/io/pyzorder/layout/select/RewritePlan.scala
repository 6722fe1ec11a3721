package io.pyzorder.layout.select

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.layout.cells.{Region, Regions}

/**
 * Files that are replaced together by new ones in the same folder.
 *
 * @param files   to read
 * @param leaves  number of files to write, at least 1; about so many where there are regions
 * @param regions rows of different ones do not share a file
 */
final case class RewriteGroup(
    folder: String,
    files: Seq[FileStatus],
    leaves: Int,
    regions: Regions = Region)

/**
 * What an OPTIMIZE rewrites.
 *
 * @param groups    the files to replace
 * @param clustered files that are clustered as wanted by an earlier run, chosen or not
 * @param excess    how many times the bytes are opened in the clustered files that stay, that
 *                  would be if their partition were laid out anew: 1 is best
 */
final case class RewritePlan(
    groups: Seq[RewriteGroup],
    clustered: Seq[FileStatus],
    excess: Double) {

  /** The files to replace that are not clustered as wanted. */
  def fresh: Seq[FileStatus] = groups.flatMap(_.files).filterNot(clustered.toSet)

  /** The groups in order, as many together as hold `limit` bytes; one that holds more is alone. */
  def batches(limit: Long): Seq[Seq[RewriteGroup]] =
    groups.foldLeft(List.empty[List[RewriteGroup]]) {
      case (last :: before, group) if RewritePlan.sizeOf(group :: last) <= limit =>
        (group :: last) :: before
      case (before, group) => List(group) :: before
    }.map(_.reverse).reverse

  /** A sentence for the user when files stay that are not narrow. */
  def remark: Option[String] =
    if (excess <= RewritePlan.BadlyClustered) None
    else Some(
      f"In the clustered files that stay, a lookup opens about $excess%.1f times the bytes that " +
        "it would if they were laid out anew, which OPTIMIZE … FULL does.")
}

object RewritePlan {

  /** From here on the user is told how many times more a lookup opens than it could. */
  private val BadlyClustered = 1.5

  /** A file of this share of the target size, or more, is not worth being compacted. */
  private val LargeEnough = 0.75

  /** For compaction: runs of small files that together make about one file of the target size. */
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

  /** For clustering, whatever the files are clustered by. */
  def everything(partitions: Seq[PartitionFiles], targetSize: Long): RewritePlan =
    RewritePlan(partitions.map(whole(_, targetSize)), Nil, 1.0)

  /** One partition anew. */
  private[layout] def whole(partition: PartitionFiles, targetSize: Long): RewriteGroup =
    RewriteGroup(partition.folder, partition.files, filesOf(partition.size, targetSize))

  private def sizeOf(groups: Seq[RewriteGroup]): Long =
    groups.iterator.flatMap(_.files).map(_.getLen).sum

  /** Number of files that so many bytes make. */
  private[pyzorder] def filesOf(bytes: Long, targetSize: Long): Int =
    math.max(1L, math.min(Int.MaxValue.toLong, math.round(bytes.toDouble / targetSize))).toInt
}
