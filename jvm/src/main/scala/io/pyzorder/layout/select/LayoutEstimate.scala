package io.pyzorder.layout.select

import org.apache.spark.sql.types.DataType

import io.pyzorder.layout.cells.{BoxSpace, FileBox}

/**
 * The share (0 to 1) of a table's files that a query on one column opens, averaged over the rows'
 * values.
 *
 * @param lookup the share opened by `column = value`
 * @param range  the share opened by a range query that matches 1% of the rows
 */
final case class OpenedShare(lookup: Double, range: Double)

/** Estimates the share of a table's files that queries open, before and after a rewrite. */
object LayoutEstimate {

  private val Range = 0.01

  /**
   * For each column, the share of the files that a query on the column opens, before and after a
   * rewrite.
   *
   * @param before the current files
   * @param after  the files after the rewrite. Their bounds determine the assumed distribution of
   *               values
   */
  def of(
      types: Seq[DataType],
      before: Seq[FileBox],
      after: Seq[FileBox]): Seq[(OpenedShare, OpenedShare)] = {
    val space = new BoxSpace(types, (before.map(_.copy(bytes = 0L)) ++ after).toIndexedSeq)
    val (old, fresh) = space.files.indices.splitAt(before.length)
    types.indices.map(c => (share(space, c, old), share(space, c, fresh)))
  }

  /** The files before and after a rewrite, in the form that `LayoutVerdict` compares. */
  def pieces(
      types: Seq[DataType],
      before: Seq[FileBox],
      after: Seq[FileBox]): (Seq[Piece], Seq[Piece]) = {
    val space = new BoxSpace(types, (before.map(_.copy(bytes = 0L)) ++ after).toIndexedSeq)
    val (old, fresh) = space.files.indices.splitAt(before.length)
    (old.map(i => piece(space, i, before(i).bytes)), fresh.map(i => piece(space, i)))
  }

  /**
   * Predicts the result of a rewrite without reading rows. Like `MergeSelection`, this assumes that
   * each group's rows fill the box around its files evenly.
   *
   * @param files  the table's current files
   * @param groups for each group, the positions in `files` of the files that are laid out together,
   *               and the number of new files that replace them
   */
  def foreseen(
      types: Seq[DataType],
      files: Seq[FileBox],
      groups: Seq[(Seq[Int], Int)],
      lexical: Boolean): (Seq[Piece], Seq[Piece]) = {
    val space = new BoxSpace(types, files.toIndexedSeq)
    val before = files.indices.map(piece(space, _))
    val replaced = groups.flatMap(_._1).toSet
    val written = groups.map { case (chosen, count) =>
      Piece(
        count.toDouble, chosen.map(files(_).bytes.toDouble).sum,
        MergeSelection.widths(space, chosen, count, lexical))
    }
    (before, files.indices.filterNot(replaced).map(before(_)) ++ written)
  }

  private def piece(space: BoxSpace, file: Int): Piece =
    piece(space, file, space.files(file).bytes)

  private def piece(space: BoxSpace, file: Int, bytes: Long): Piece =
    Piece(1.0, bytes.toDouble, space.columns.map(space.width(_, file)))

  /** The share of these files that a query on a column opens. */
  def of(dataType: DataType, files: Seq[FileBox]): OpenedShare =
    share(new BoxSpace(Seq(dataType), files.toIndexedSeq), 0, files.indices)

  private def share(space: BoxSpace, column: Int, files: Seq[Int]): OpenedShare = {
    val widths = files.map(space.width(column, _))
    def opened(held: Double): Double =
      if (widths.isEmpty) 0.0 else widths.map(w => math.min(1.0, w + held)).sum / widths.length
    OpenedShare(opened(0.0), opened(Range))
  }
}
