package io.pyzorder.layout

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

import io.pyzorder.expressions.ZOrderValue
import io.pyzorder.index.ColumnStatistics

/**
 * Where the rows of chosen files go, as found from a sample of them.
 *
 * @param keys       what rows are laid out by: the clustering columns, or their byte[] z-value
 * @param lexical    the keys one after the other, not interleaved
 * @param clustering for the tasks
 */
final class ClusteringPlan private (
    val keys: Seq[Expression],
    val lexical: Boolean,
    val clustering: Clustering,
    groups: Seq[RewriteGroup],
    types: Seq[DataType],
    sample: Sample,
    trees: Seq[KdTree]) {

  /** The new files, as far as the sample shows them: of those that rows were drawn for. */
  def files: Seq[FileBox] = groups.indices.flatMap { number =>
    val rows = sample.rowsOf(number)
    val bytes = groups(number).files.map(_.getLen).sum.toDouble
    val leaves = trees(number).leaves(sample.ids(clustering.boundaries, number))
    rows.indices.groupBy(leaves(_)).toSeq.sortBy(_._1).map { case (_, drawn) =>
      val columns = types.indices.map { c =>
        statistics(types(c), drawn.map(row => rows(row)(rows(row).length - types.length + c)))
      }
      FileBox((bytes * drawn.length / rows.length).toLong, columns)
    }
  }

  private def statistics(dataType: DataType, values: Seq[Any]): ColumnStatistics = {
    val order = TypeUtils.getInterpretedOrdering(dataType)
    val present = values.filter(_ != null)
    ColumnStatistics(
      bounds = if (present.isEmpty) None else Some((present.min(order), present.max(order))),
      exact = false,
      nullCount = Some(values.length.toLong - present.length),
      nanSeen = false,
      empty = present.isEmpty,
      settingsDependent = false)
  }
}

object ClusteringPlan {

  /** So many distinct ranks of a column tell files apart well enough. */
  private val MaxBoundaries = 1 << 16

  /**
   * Samples the rows, in one job over the clustering columns alone.
   *
   * @param groups    the files of `input`
   * @param columns   paths of the clustering columns, as the schema spells them
   * @param curve     `zorder`, `hilbert` or `linear`
   * @param direct    z-values of the values' own ordered bytes, not of their ranks: the rows are
   *                  sorted by them alone, and cut into even files; only with curve `zorder`
   * @param fractions share of each group's rows to sample
   */
  def of(
      input: InputRelation,
      groups: Seq[RewriteGroup],
      columns: Seq[Seq[String]],
      curve: String,
      direct: Boolean,
      fractions: Array[Double]): ClusteringPlan = {
    val values = columns.map(input.column)
    val keys = if (direct) Seq(ZOrderValue(values)) else values
    val lexical = direct || curve == "linear"
    val drawn = if (direct) keys ++ values else values
    val sample = Sample.take(input.only(columns), drawn, input.partition, fractions)
    val boundaries = keys.zipWithIndex.map { case (key, number) =>
      sample.boundaries(key, number, MaxBoundaries, groups.flatMap(_.regions.cutsOf(number)))
    }.toArray
    val trees = groups.zipWithIndex.map { case (group, number) =>
      KdTree.build(
        sample.ids(boundaries, number), group.leaves, lexical, group.regions,
        (column, value) => boundaries(column).rangeId(value))
    }.toArray
    new ClusteringPlan(
      keys, lexical, new Clustering(boundaries, trees, curve), groups, values.map(_.dataType),
      sample, trees.toSeq)
  }
}
