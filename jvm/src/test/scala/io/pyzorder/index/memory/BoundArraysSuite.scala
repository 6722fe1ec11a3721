package io.pyzorder.index.memory

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class BoundArraysSuite extends AnyFunSuite {

  /** For each type, the bounds of two files in Catalyst's internal representation. */
  private val cases = Seq[(DataType, Seq[(Any, Any)])](
    BooleanType -> Seq((false, true), (true, true)),
    ByteType -> Seq((Byte.MinValue, Byte.MaxValue), (1.toByte, 1.toByte)),
    ShortType -> Seq((Short.MinValue, Short.MaxValue), (0.toShort, 1.toShort)),
    IntegerType -> Seq((Int.MinValue, Int.MaxValue), (-1, 0)),
    DateType -> Seq((-719162, 2932896), (0, 0)),
    LongType -> Seq((Long.MinValue, Long.MaxValue), (-1L, 1L)),
    TimestampType -> Seq((-1L, 1760000000000000L), (0L, 0L)),
    FloatType -> Seq((Float.NegativeInfinity, 0.1f), (Float.MinPositiveValue, Float.MaxValue)),
    DoubleType -> Seq((-0.5, 0.1), (Double.MinPositiveValue, Double.PositiveInfinity)),
    DecimalType(9, 2) -> Seq((Decimal(-1L, 9, 2), Decimal(999999999L, 9, 2)),
      (Decimal(0L, 9, 2), Decimal(1L, 9, 2))),
    DecimalType(38, 3) -> Seq((Decimal("-9999999999999999999.123"), Decimal("1e30")),
      (Decimal("0.001"), Decimal("0.002"))),
    StringType -> Seq((UTF8String.fromString(""), UTF8String.fromString("\u00e9")),
      (UTF8String.fromString("a"), UTF8String.fromString("b"))))

  for ((dataType, bounds) <- cases) test(s"bounds of ${dataType.sql} are read back") {
    val builder = BoundArrays.builder(dataType, bounds.length)
    bounds.zipWithIndex.foreach { case ((least, greatest), i) => builder.set(i, least, greatest) }
    val made = builder.result()
    val read = bounds.indices.map { i =>
      (made.value(i, least = true, dataType), made.value(i, least = false, dataType))
    }
    assert(read == bounds)
  }
}
