package io.pyzorder.layout.select

/**
 * What a rewrite of the files in one folder would cost and save.
 *
 * @param folder  the folder, in the form that TableFolder.relativize returns
 * @param files   number of files to replace
 * @param bytes   their total size
 * @param written number of files to write
 * @param saved   how much cheaper a lookup would be, in bytes; see `Lookup.cost`. Negative if
 *                lookups would be more expensive
 * @param worth   the same for all expected lookups
 * @param pays    whether the rewrite pays off; see LayoutVerdict. Merging the files of a folder
 *                that no recorded query reads does not
 */
final case class PartitionGain(
    folder: String,
    files: Int,
    bytes: Long,
    written: Int,
    saved: Double,
    worth: Double,
    pays: Boolean)

object PartitionGain {

  /**
   * One gain per folder of the plan.
   *
   * @param before   for each file to replace, how it is laid out now
   * @param after    for each group of the plan, how its new files will be laid out
   * @param clusters whether there are clustering columns
   * @param worth    how many bytes all expected lookups would save in a folder, in which a lookup
   *                 saves the given number of bytes
   */
  def of(
      plan: RewritePlan,
      before: Seq[Seq[Piece]],
      after: Seq[Piece],
      clusters: Boolean,
      worth: (String, Double) => Double): Seq[PartitionGain] =
    plan.groups.indices.groupBy(plan.groups(_).folder).toSeq.sortBy(_._1).map {
      case (folder, numbers) =>
        val files = numbers.flatMap(plan.groups(_).files)
        val bytes = files.map(_.getLen).sum
        val written = numbers.map(plan.groups(_).leaves).sum
        val now = LayoutVerdict.lookup(numbers.flatMap(before))
        val next = LayoutVerdict.lookup(numbers.map(after))
        val saved = now.cost - next.cost
        val gain = worth(folder, saved)
        val pays =
          clusters && LayoutVerdict.saves(worth(folder, now.bytes - next.bytes), bytes) ||
            gain > 0 && LayoutVerdict.merges(files.length, bytes, written, clusters)
        PartitionGain(folder, files.length, bytes, written, saved, gain, pays)
    }
}
