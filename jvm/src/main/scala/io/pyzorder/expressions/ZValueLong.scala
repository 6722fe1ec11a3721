package io.pyzorder.expressions

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, LongType}

/**
 * The boundaries method's z-value: each range id stretched over all the bits a column has, then
 * interleaved into one non-negative BIGINT. Not a function of SQL: OPTIMIZE sorts by it.
 *
 * @param ids    one INT a column (RangeIdOf), never null; 1 to 63 columns
 * @param counts one count of range ids a column (`Boundaries.idCount`): ids lie below it
 */
case class ZValueLong(ids: Seq[Expression], counts: Seq[Int]) extends Expression {
  require(ids.length == counts.length, s"${ids.length} columns have ${counts.length} counts")

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
 * What each range id of each column adds to the z-value, looked up instead of divided and spread
 * for every row. Only the counts travel to the executors.
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

  /** By range id: the column's bits at their places in the z-value. */
  def of(column: Int): Array[Long] = tables(column)
}
