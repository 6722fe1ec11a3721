package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, ExprId, Expression}
import org.apache.spark.sql.catalyst.expressions.{KnownFloatingPointNormalized, SubqueryExpression}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyValues}

/**
 * A join key, expressed in terms of the columns of a plan on the join's scanned side.
 *
 * @param ordinal the key's position among the join's keys
 */
private[skipping] final case class JoinedKey(column: Expression, ordinal: Int) {

  /** The same key below a projection that defines these expressions. */
  def below(named: Map[ExprId, Expression]): JoinedKey = copy(column = column.transform {
    case a: AttributeReference if named.contains(a.exprId) => named(a.exprId)
  })

  /**
   * The key as an expression over the relation, in which names are spelled as in the relation. None
   * unless the key is a column of the relation's files or an order-preserving function of such a
   * column. A partition column is not a column of the files.
   *
   * Spark compares the keys of a hash join by their bytes. On both sides it therefore normalizes
   * every NaN to a single NaN, and -0.0 to 0.0. `=` also treats these values as equal, and so does
   * the index, so the column and its normalized form select the same files.
   */
  def of(relation: LogicalRelation, files: HadoopFsRelation): Option[Expression] = {
    val known = relation.output
      .filterNot(a => files.partitionSchema.fieldNames.contains(a.name))
      .map(a => a.exprId -> a).toMap
    val plain = column match {
      case KnownFloatingPointNormalized(NormalizeNaNAndZero(child)) => child
      case other => other
    }
    val attributes = plain.collect { case a: AttributeReference => a }
    if (attributes.isEmpty || !attributes.forall(a => known.contains(a.exprId))) None
    else {
      val spelled = plain.transform {
        case a: AttributeReference => JoinedKey.unnumbered(known(a.exprId))
      }
      if (FilterColumn.unapply(spelled).isDefined) Some(spelled) else None
    }
  }
}

private[skipping] object JoinedKey {

  private val NoId = ExprId(0, new java.util.UUID(0L, 0L))

  /** The attribute without its id, because Spark assigns a new id each time a table is read. */
  private def unnumbered(a: AttributeReference): AttributeReference =
    AttributeReference(a.name, a.dataType, nullable = true, a.metadata)(NoId)
}

/**
 * The keys of a join with one broadcast side. They are read on first use.
 *
 * @param built   the keys on the broadcast side
 * @param scanned the keys that they must equal, in the same order
 * @param maxKeys the maximum number of distinct values; if there are more, only the least and the
 *                greatest are used
 */
private[skipping] final class BroadcastKeys(
    build: BuildSide,
    built: Seq[Expression],
    scanned: Seq[Expression],
    maxKeys: Int) {

  /** The keys on the scanned side. */
  val wanted: Seq[JoinedKey] = scanned.zipWithIndex.map { case (e, i) => JoinedKey(e, i) }

  /**
   * The filter that the key's values imply for the column. Returns None if they imply none, or if
   * `present` already contains it.
   */
  def filter(
      key: JoinedKey,
      column: Expression,
      present: Seq[JoinKeyFilter]): Option[JoinKeyFilter] = {
    val origin = new JoinKeyFilter.Origin(build.exchange, key.ordinal, column)
    if (present.exists(_.origin == origin) || built(key.ordinal).dataType != column.dataType) None
    else values.get(key.ordinal).flatMap(JoinKeyFilter.of(column, _, origin))
  }

  private lazy val values: Map[Int, KeyValues] = {
    val ordered = built.indices.filter(i => FilterColumn.isOrdered(built(i).dataType))
    val builders = ordered.map(i => new KeyValues.Builder(built(i).dataType, maxKeys))
    val usable = built.forall(k => k.deterministic && !SubqueryExpression.hasSubquery(k))
    val rows = if (usable) build.valuesOf(built) else None
    rows.fold(Map.empty[Int, KeyValues]) { rows =>
      rows.foreach { row =>
        ordered.indices.foreach(i => builders(i).add(row(ordered(i))))
      }
      ordered.zip(builders.map(_.result)).toMap
    }
  }
}
