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
 * @param worth   how many bytes all expected lookups would save
 */
final case class PartitionGain(
    folder: String,
    files: Int,
    bytes: Long,
    written: Int,
    saved: Double,
    worth: Double)

object PartitionGain {

  /**
   * One gain per folder of the plan.
   *
   * @param before for each file to replace, how it is laid out now
   * @param after  for each group of the plan, how its new files will be laid out
   * @param worth  how many bytes all expected lookups would save in a folder, in which a lookup
   *               saves the given number of bytes
   */
  def of(
      plan: RewritePlan,
      before: Seq[Seq[Piece]],
      after: Seq[Piece],
      worth: (String, Double) => Double): Seq[PartitionGain] =
    plan.groups.indices.groupBy(plan.groups(_).folder).toSeq.sortBy(_._1).map {
      case (folder, numbers) =>
        val files = numbers.flatMap(plan.groups(_).files)
        val saved = LayoutVerdict.costOf(numbers.flatMap(before)) -
          LayoutVerdict.costOf(numbers.map(after))
        PartitionGain(
          folder, files.length, files.map(_.getLen).sum, numbers.map(plan.groups(_).leaves).sum,
          saved, worth(folder, saved))
    }
}
