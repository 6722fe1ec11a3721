package io.pyzorder.layout.write

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.layout.cells.{Clustering, ClusteringKeys, FileBox, Sample}
import io.pyzorder.layout.cells.SampledQueries
import io.pyzorder.layout.select.RewriteGroup

/**
 * Decides, based on a sample, which new file each rewritten row goes to.
 *
 * @param clustering assigns the rows to files; used by tasks
 */
final class ClusteringPlan private (
    val keys: ClusteringKeys,
    val clustering: Clustering,
    groups: Seq[RewriteGroup],
    types: Seq[DataType],
    sample: Sample) {

  /** An estimate of the new files, based on the sample. Files without sampled rows are left out. */
  def files: Seq[FileBox] = groups.indices.flatMap { number =>
    val rows = sample.rowsOf(number)
    val bytes = groups(number).files.map(_.getLen).sum.toDouble
    val leaves = clustering.trees(number).leaves(sample.ids(clustering.boundaries, number))
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

  /**
   * Samples the rows in one job that reads only what the clustering columns need.
   *
   * @param groups    the files of `input`
   * @param columns   the clustering columns
   * @param curve     `zorder`, `hilbert` or `linear`
   * @param direct    see ClusteringKeys
   * @param fractions share of each group's rows to sample
   * @param queries   see Clustering.of
   */
  def of(
      input: InputRelation,
      groups: Seq[RewriteGroup],
      columns: Seq[IndexedColumn],
      curve: String,
      direct: Boolean,
      fractions: Array[Double],
      queries: Option[SampledQueries]): ClusteringPlan = {
    val values = columns.map(input.value)
    val keys = ClusteringKeys.of(values, curve, direct)
    val drawn = if (direct) keys.expressions ++ values else values
    val sample = Sample.take(input.only(columns), drawn, input.number, fractions)
    val clustering =
      Clustering.of(keys, sample, groups.map(group => group.leaves -> group.regions), queries)
    new ClusteringPlan(keys, clustering, groups, values.map(_.dataType), sample)
  }
}
