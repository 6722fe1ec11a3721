package io.pyzorder.publish.reading

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StructType

/**
 * The partitions that a plan's scans select. A partition is selected if it passes all filters of at
 * least one alternative. Only selected partitions need to be listed.
 *
 * @param alternatives for each scan, its filters on partition columns. A scan without filters
 *                     selects every partition
 */
final case class SelectedPartitions private (
    columns: StructType,
    alternatives: Seq[Seq[Expression]]) {
  import SelectedPartitions._

  /**
   * Whether these partitions are known to include all partitions that a scan with these filters
   * selects. Returns true only if the scan has all filters of one of the alternatives.
   */
  def contain(filters: Seq[Expression]): Boolean = {
    val own = bound(filters)
    alternatives.exists(_.forall(one => own.exists(_.semanticEquals(one))))
  }

  /** Adds the partitions that a scan with these filters selects. */
  def or(filters: Seq[Expression]): SelectedPartitions =
    if (contain(filters)) this
    else if (alternatives.length == MaxAlternatives) copy(alternatives = Seq(Nil))
    else {
      val own = bound(filters)
      val others = alternatives.filterNot(SelectedPartitions(columns, Seq(own)).contain(_))
      copy(alternatives = others :+ own)
    }

  /** Whether every partition is selected. */
  def areAll: Boolean = alternatives.exists(_.isEmpty)

  /**
   * The filters, with each column replaced by its position in the schema, because the scans of a
   * table use different ids for the same column. Filters that are nondeterministic or refer to
   * other columns are left out. Filters with a subquery are also left out, because the subquery's
   * result is not known yet. Leaving out a filter is safe, because the scan then only appears to
   * select more partitions.
   */
  private def bound(filters: Seq[Expression]): Seq[Expression] = filters.flatMap { filter =>
    val places = filter.transform {
      case a: AttributeReference if columns.fieldNames.contains(a.name) =>
        BoundReference(columns.fieldIndex(a.name), a.dataType, nullable = true)
    }
    val isUsable = filter.deterministic &&
      !places.exists(e => e.isInstanceOf[Attribute] || e.isInstanceOf[PlanExpression[_]])
    if (isUsable) Some(places) else None
  }

  /** The alternatives in a form that refers to columns by name. */
  def named: Seq[Seq[Expression]] = alternatives.map(_.map(_.transform {
    case BoundReference(place, dataType, _) => AttributeReference(columns(place).name, dataType)()
  }))

  /** One filter that selects these partitions, or None if every partition is selected. */
  def anyOf: Option[Expression] =
    if (areAll) None else named.map(_.reduce(And)).reduceOption(Or)
}

object SelectedPartitions {

  /** If there are more alternatives than this, every partition counts as selected. */
  private val MaxAlternatives = 16

  def none(columns: StructType): SelectedPartitions = SelectedPartitions(columns, Nil)

  def all(columns: StructType): SelectedPartitions = SelectedPartitions(columns, Seq(Nil))
}
