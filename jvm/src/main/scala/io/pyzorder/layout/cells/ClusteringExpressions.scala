package io.pyzorder.layout.cells

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{Block, EmptyBlock, FalseLiteral}
import org.apache.spark.sql.types._

import io.pyzorder.expressions.Boundaries

/** An expression that is computed from the range ids of a row's clustering columns. */
sealed abstract class RangeIdsExpression extends Expression {

  /** The clustering columns. */
  def columns: Seq[Expression]

  def clustering: Broadcast[Clustering]

  override def nullable: Boolean = false

  @transient protected lazy val ids: Array[Int] = new Array[Int](columns.length)

  /** The range ids of a row, in an array that the next call overwrites. */
  protected def rangeIds(row: InternalRow): Array[Int] = {
    val boundaries = clustering.value.boundaries
    var c = 0
    while (c < ids.length) {
      ids(c) = boundaries(c).rangeId(columns(c).eval(row))
      c += 1
    }
    ids
  }

  /**
   * Returns Java code that fills an int[] with the range ids. Also returns the names of the
   * variables for the clustering and the array.
   */
  protected def rangeIdsCode(ctx: CodegenContext): (Block, String, String) = {
    val reference = ctx.addReferenceObj("clustering", clustering, classOf[Broadcast[_]].getName)
    val clusteringClass = classOf[Clustering].getName
    val shared = ctx.addMutableState(
      clusteringClass, "clustering", v => s"$v = ($clusteringClass) $reference.value();",
      forceInline = true)
    val array = ctx.addMutableState(
      "int[]", "rangeIds", v => s"$v = new int[${columns.length}];", forceInline = true)
    val boundariesClass = classOf[Boundaries].getName
    val blocks = columns.zipWithIndex.map { case (column, c) =>
      val boundaries = ctx.addMutableState(
        boundariesClass, "boundaries", v => s"$v = $shared.boundaries()[$c];", forceInline = true)
      val value = column.genCode(ctx)
      val found = rangeIdCode(boundaries, value.value.code, column.dataType)
      code"""
        |${value.code}
        |$array[$c] = ${value.isNull} ? 0 : $found;
      """.stripMargin
    }
    (blocks.foldLeft[Block](EmptyBlock)(_ + _), shared, array)
  }

  private def rangeIdCode(boundaries: String, value: String, dataType: DataType): String =
    CodeGenerator.javaType(dataType) match {
      case "byte" | "short" | "int" | "long" => s"$boundaries.rangeIdOfLong((long) $value)"
      case java if CodeGenerator.isPrimitiveType(dataType) =>
        s"$boundaries.rangeId(${CodeGenerator.boxedType(java)}.valueOf($value))"
      case _ => s"$boundaries.rangeId($value)"
    }
}

/**
 * A number that Spark's hash partitioning maps to the task that writes the row's file. If a cell
 * has too many rows for one file, a hash of `turn` distributes its rows over several files.
 *
 * @param partition number of the table partition
 * @param turn      an INT that varies from row to row. If None, each task counts its rows instead.
 *                  Counting is safe only if a retried task reads its rows in the same order.
 *                  Otherwise, rows could be lost or duplicated
 */
case class ShuffleKey(
    columns: Seq[Expression],
    partition: Expression,
    clustering: Broadcast[Clustering],
    turn: Option[Expression])
    extends RangeIdsExpression {

  @transient private var counted: Int = 0

  override def dataType: DataType = IntegerType

  override def children: Seq[Expression] = (columns :+ partition) ++ turn

  override def eval(row: InternalRow): Any = {
    counted = turn.fold(counted + 1)(_.eval(row).asInstanceOf[Int]) & Int.MaxValue
    clustering.value.shuffleKey(rangeIds(row), partition.eval(row).asInstanceOf[Int], counted)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (idsCode, shared, array) = rangeIdsCode(ctx)
    val taken = ctx.addMutableState(CodeGenerator.JAVA_INT, "turn", forceInline = true)
    val number = partition.genCode(ctx)
    val own = turn.map(_.genCode(ctx))
    val next = own.fold(s"$taken + 1")(_.value.toString)
    ev.copy(isNull = FalseLiteral,
      code = code"""
        |$idsCode
        |${number.code}
        |${own.fold[Block](EmptyBlock)(_.code)}
        |$taken = ($next) & ${Int.MaxValue};
        |int ${ev.value} = $shared.shuffleKey($array, ${number.value}, $taken);
    """.stripMargin)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression =
    copy(
      columns = newChildren.take(columns.length),
      partition = newChildren(columns.length),
      turn = newChildren.drop(columns.length + 1).headOption)
}

/**
 * The row's position in its file. Its type is LONG, so Spark's radix sort never has to compare
 * rows.
 */
case class PlaceInFile(
    columns: Seq[Expression],
    clustering: Broadcast[Clustering])
    extends RangeIdsExpression {

  override def dataType: DataType = LongType

  override def children: Seq[Expression] = columns

  override def eval(row: InternalRow): Any = clustering.value.place(rangeIds(row))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (idsCode, shared, array) = rangeIdsCode(ctx)
    ev.copy(isNull = FalseLiteral,
      code = code"""
        |$idsCode
        |long ${ev.value} = $shared.place($array);
    """.stripMargin)
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]): Expression = copy(columns = newChildren)
}
