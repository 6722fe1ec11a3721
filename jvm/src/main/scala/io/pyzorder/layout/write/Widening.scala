package io.pyzorder.layout.write

import org.apache.spark.sql.types._

/**
 * Decides whether a column's values in a file fit the column's current type in the table. Spark's
 * ORC reader returns null for a value that does not fit, and a rewrite would then lose the value.
 */
private[layout] object Widening {

  /** Whether the table's type can represent every value of the file's type. */
  def keeps(file: DataType, table: DataType): Boolean = (file, table) match {
    case (NullType, _) | (_, _: UserDefinedType[_]) => true
    case (a: DecimalType, b: DecimalType) =>
      a.scale <= b.scale && a.precision - a.scale <= b.precision - b.scale
    case (a, b) if a.getClass == b.getClass => true
    case (_: StructType | _: ArrayType | _: MapType, _) => false
    case (_, _: StringType) | (_: StringType, BinaryType) | (FloatType, DoubleType) => true
    case (DateType | TimestampType | TimestampNTZType, TimestampType | TimestampNTZType) => true
    case (BooleanType, Bytes(_)) => true
    case (Bytes(a), Bytes(b)) => a <= b
    case (Bytes(a), DoubleType) => a < 8
    case (Bytes(a), FloatType) => a < 4
    case (Bytes(a), b: DecimalType) => keeps(DecimalType(Digits(a), 0), b)
    case _ => false
  }

  /**
   * The number of decimal digits in the largest integer of each size, keyed by the size in bytes.
   */
  private val Digits = Map(1 -> 3, 2 -> 5, 4 -> 10, 8 -> 19)

  /** Matches an integer type and extracts its size in bytes. */
  private object Bytes {
    def unapply(dataType: DataType): Option[Int] = dataType match {
      case ByteType | ShortType | IntegerType | LongType => Some(dataType.defaultSize)
      case _ => None
    }
  }
}
