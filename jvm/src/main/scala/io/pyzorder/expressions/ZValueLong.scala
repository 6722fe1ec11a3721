package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * The z-value of the boundaries method: each range id is stretched over all bits of its column, and
 * the results are interleaved into one non-negative BIGINT. This is not a SQL function. OPTIMIZE
 * computes the same value with PlaceInFile.
 *
 * @param ids    one expression of type INT per column (RangeIdOf), which must not return null.
 *               There must be 1 to 63 columns
 * @param counts the number of range ids of each column (`Boundaries.idCount`), which is greater
 *               than every id
 */
case class ZValueLong(ids: Seq[Expression], counts: Seq[Int]) extends Expression {
  require(ids.length == counts.length, s"got ${counts.length} counts for ${ids.length} columns")

  @transient private lazy val parts = new ZValueParts(counts.toArray)

  override def children: Seq[Expression] = ids

  override def dataType: DataType = LongType

  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = {
    var z = 0L
    var i = 0
    while (i < ids.length) {
      z |= parts.of(i)(ids(i).eval(input).asInstanceOf[Int])
      i += 1
    }
    z
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val held = ctx.addReferenceObj("zValueParts", parts)
    val z = ev.value.toString
    val add = ids.zipWithIndex.map { case (id, i) =>
      val part = ctx.addMutableState("long[]", "zValuePart", name => s"$name = $held.of($i);")
      val c = id.genCode(ctx)
      code"""
        ${c.code}
        $z |= $part[${c.value}];"""
    }
    ev.copy(
      code = code"""
        long $z = 0L;
        ${add.reduce(_ + _)}""",
      isNull = FalseLiteral)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(ids = newChildren)
}

/**
 * For each column, a table of the bits that each range id contributes to the z-value. For each row,
 * a lookup in the table replaces a division and the spreading of bits. Only the number of range ids
 * per column is sent to the executors, which then build the tables.
 */
final class ZValueParts(counts: Array[Int]) extends Serializable {

  @transient private lazy val tables: Array[Array[Long]] = {
    val n = counts.length
    val bits = InterleaveBits.bitsPerColumn(n)
    counts.zipWithIndex.map { case (count, column) =>
      Array.tabulate(count) { id =>
        InterleaveBits.spread(InterleaveBits.stretched(id, count, bits), n,
          bits) << (n - 1 - column)
      }
    }
  }

  /** For each range id, the column's bits at their places in the z-value. */
  def of(column: Int): Array[Long] = tables(column)
}
