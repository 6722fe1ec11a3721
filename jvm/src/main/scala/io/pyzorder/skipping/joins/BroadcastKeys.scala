package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, ExprId, Expression}
import org.apache.spark.sql.catalyst.expressions.{KnownFloatingPointNormalized, SubqueryExpression}
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.pyzorder.BuildSide

import io.pyzorder.skipping.predicate.{FilterColumn, JoinKeyFilter, KeyValues}

/**
 * One of a join's keys, as the columns of a plan on the join's scanned side give it.
 *
 * @param ordinal its place among the join's keys
 */
private[skipping] final case class JoinedKey(column: Expression, ordinal: Int) {

  /** The same below a projection that names these expressions. */
  def below(named: Map[ExprId, Expression]): JoinedKey = copy(column = column.transform {
    case a: AttributeReference if named.contains(a.exprId) => named(a.exprId)
  })

  /**
   * The column of the relation's files that the key is, or a widening cast of it, as the relation
   * spells it; None: it is something else, or a partition column.
   *
   * Spark compares the keys of a hash join by their bytes, and has therefore made one NaN of all
   * and 0.0 of -0.0, on both sides. So compares `=`, and the index with it: of the column that is
   * normalized the same files are asked for.
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

  /** The same for every reading of a table; Spark numbers the columns anew each time. */
  private def unnumbered(a: AttributeReference): AttributeReference =
    AttributeReference(a.name, a.dataType, nullable = true, a.metadata)(NoId)
}

/**
 * The keys of one join whose one side has been broadcast; looked through when they are first asked
 * for.
 *
 * @param built   the keys on the broadcast side
 * @param scanned those they must equal, in the same order
 * @param maxKeys of more values only the least and the greatest are used
 */
private[skipping] final class BroadcastKeys(
    build: BuildSide,
    built: Seq[Expression],
    scanned: Seq[Expression],
    maxKeys: Int) {

  /** The keys of the scanned side. */
  val wanted: Seq[JoinedKey] = scanned.zipWithIndex.map { case (e, i) => JoinedKey(e, i) }

  /** The filter that the key gives over the column; None: none, or `present` has it already. */
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
