package io.pyzorder.expressions

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types._

/** Generates Java code that calls OrderedBytes and Boundaries without boxing values. */
private[expressions] object OrderedBytesCode {

  private val ordered = "io.pyzorder.expressions.OrderedBytes"

  /** Java code that applies `OrderedBytes.of` to the non-null variable `value`. */
  def of(value: String, dataType: DataType): String = {
    if (OrderedBytes.isLong(dataType)) {
      val shift = OrderedBytes.shift(dataType)
      s"$ordered.ofLong(${longOf(value, dataType)}, $shift, ${OrderedBytes.flip(dataType)}L)"
    } else {
      dataType match {
        case d: DecimalType => s"$ordered.ofWideDecimal($value, ${d.scale})"
        case BinaryType => s"$ordered.ofBytes($value)"
        case t if shim.isByteOrderedString(t) => s"$ordered.ofUtf8($value)"
        case t => s"$ordered.ofBytes(${shim.collationKeyCode(value, t)})"
      }
    }
  }

  /** Java code that applies `boundaries.rangeId` to the non-null variable `value`. */
  def rangeId(boundaries: String, value: String, dataType: DataType): String = {
    if (OrderedBytes.isLong(dataType)) {
      s"$boundaries.rangeIdOfLong(${longOf(value, dataType)})"
    } else if (dataType == BinaryType) {
      s"$boundaries.rangeIdOfBytes($value)"
    } else if (shim.isByteOrderedString(dataType)) {
      s"$boundaries.rangeIdOfUtf8($value)"
    } else {
      s"$boundaries.rangeId($value)"
    }
  }

  private def longOf(value: String, dataType: DataType): String = dataType match {
    case BooleanType => s"($value ? 1L : 0L)"
    case FloatType => s"$ordered.longOfFloat($value)"
    case DoubleType => s"$ordered.longOfDouble($value)"
    case d: DecimalType => s"$ordered.longOfDecimal($value, ${d.scale})"
    case _ => s"((long) $value)"
  }
}
