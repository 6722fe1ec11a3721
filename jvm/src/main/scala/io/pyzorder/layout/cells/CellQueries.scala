package io.pyzorder.layout.cells

/**
 * A cell of the space of the clustering columns, bounded by the sampled rows in it.
 *
 * @param least    for each column, the lowest range id that is not null's; 0 if there is none
 * @param greatest for each column, the greatest range id; 0 if all values are null
 * @param hasNull  for each column, whether it contains null
 */
private[pyzorder] final case class CellBounds(
    least: Array[Int],
    greatest: Array[Int],
    hasNull: Array[Boolean])

/**
 * A query by which a table is cut.
 *
 * @param count    how often the query occurs
 * @param evidence the number of queries that it stands for. An example of queries with different
 *                 constants stands only for itself
 * @param reads    for each cell, whether the query would read a file with its rows
 */
private[pyzorder] final case class CellQuery(count: Long, evidence: Int, reads: Array[Boolean])

/** The queries by which the rows of one table partition are cut. */
private[pyzorder] trait CellQueries {

  /** The positions of the columns that are cut where the queries do not decide; not empty. */
  def evenly: Seq[Int]

  /**
   * The range ids at which the ranges of the queries begin, and those that follow their ends, for
   * each column.
   */
  def edges: Seq[Seq[Int]]

  /** The queries, applied to some cells. */
  def apply(cells: IndexedSeq[CellBounds]): Seq[CellQuery]
}

/** The queries by which a table is cut. */
private[pyzorder] trait SampledQueries {

  /**
   * The queries, applied to a sample of one table partition.
   *
   * @param values the values of the clustering columns, indexed first by row, then by column
   * @param ids    their range ids, indexed first by column, then by row
   */
  def of(values: Array[Array[Any]], ids: Array[Array[Int]]): CellQueries
}
