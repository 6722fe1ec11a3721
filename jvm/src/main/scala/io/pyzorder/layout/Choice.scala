package io.pyzorder.layout

import org.apache.hadoop.fs.FileStatus

import io.pyzorder.index.IndexSnapshot
import io.pyzorder.publish.TableFolder

/**
 * Files that are replaced together by new ones in the same folder.
 *
 * @param files  to read
 * @param leaves number of files to write, at least 1
 */
final case class RewriteGroup(folder: String, files: Seq[FileStatus], leaves: Int)

/** Chooses what an OPTIMIZE rewrites. */
object Choice {

  /** A file of this share of the target size, or more, is not worth being compacted. */
  private val LargeEnough = 0.75

  /**
   * For clustering: every partition with a file that is not clustered by these columns yet.
   *
   * @param targetSize bytes of a file
   * @param columns    names of the clustering columns, in order
   * @param index      None: nothing is known of any file
   * @param full       all partitions, whatever the index says
   */
  def toCluster(
      partitions: Seq[PartitionFiles],
      targetSize: Long,
      columns: Seq[String],
      table: TableFolder,
      index: Option[IndexSnapshot],
      full: Boolean): Seq[RewriteGroup] = {
    def isClustered(file: FileStatus): Boolean = index.exists { entries =>
      val ref = PartitionListing.refOf(table, file)
      val i = entries.find(ref.path)
      i >= 0 && entries.size(i) == ref.size &&
      entries.modificationTime(i) == ref.modificationTime && entries.clusteredBy(i) == columns
    }
    partitions.filter(full || !_.files.forall(isClustered)).map { partition =>
      RewriteGroup(partition.folder, partition.files, leavesFor(partition.size, targetSize))
    }
  }

  /** For compaction: runs of small files that together make about one file of the target size. */
  def toCompact(partitions: Seq[PartitionFiles], targetSize: Long): Seq[RewriteGroup] =
    partitions.flatMap { partition =>
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

  private def leavesFor(size: Long, targetSize: Long): Int =
    math.max(1L, math.min(Int.MaxValue.toLong, math.round(size.toDouble / targetSize))).toInt
}
