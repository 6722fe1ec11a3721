package io.pyzorder.index.collect

import java.math.{BigDecimal => JBigDecimal, BigInteger}

import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.{LogicalTypeAnnotation, PrimitiveType}
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.{ByteArray, UTF8String}

import io.pyzorder.index.model.{Calendars, IndexedColumns, LongValue, TruncatedBounds}

/** Relates the stored values and bounds of a Parquet column to the values of a Spark type. */
private[index] object ParquetRules {

  /** The type that Spark uses for unsigned 64-bit integers. */
  private val UnsignedLong: DataType = DecimalType(20, 0)

  /**
   * Whether reading the column as this type either leaves all values unchanged or fails. Returns
   * false for all combinations that are not listed below, because one Spark version may fail where
   * another one converts the values.
   */
  def isReadable(leaf: PrimitiveType, dataType: DataType): Boolean = {
    val annotation = leaf.getLogicalTypeAnnotation
    (leaf.getPrimitiveTypeName, dataType) match {
      case (BOOLEAN, BooleanType) => true
      case (INT32, ByteType | ShortType | IntegerType | LongType) =>
        isSigned(annotation) || unsignedFits(annotation, dataType)
      case (INT32, _: YearMonthIntervalType) => annotation == null
      case (INT32, DateType) => annotation.isInstanceOf[DateLogicalTypeAnnotation]
      case (INT64, LongType) => isSigned(annotation)
      case (INT64, _: DayTimeIntervalType) => annotation == null
      case (INT64, TimestampType) => isMicrosOrMillis(annotation)
      case (INT64, TimestampNTZType) => isMicrosOrMillis(annotation) && !isUtc(annotation)
      case (INT64, UnsignedLong) if !isDecimal(annotation) => unsignedFits(annotation, dataType)
      case (INT64, time) if IndexedColumns.isTime(time) =>
        annotation.isInstanceOf[TimeLogicalTypeAnnotation]
      case (INT96, TimestampType) => true
      case (FLOAT, FloatType) | (DOUBLE, DoubleType) => true
      case (INT32 | INT64 | BINARY | FIXED_LEN_BYTE_ARRAY, decimal: DecimalType) =>
        isDecimal(annotation) && holds(annotation, decimal)
      case (BINARY, StringType | BinaryType) => isText(annotation)
      case (BINARY, _: StringType) => isText(annotation)
      case (FIXED_LEN_BYTE_ARRAY, BinaryType) => annotation == null
      case _ => false
    }
  }

  /** Whether the bounds of the column can be used. If not, only its null counts can be used. */
  def hasBounds(column: FooterColumn): Boolean = column.dataType match {
    case _ if column.isChar => false
    case string: StringType => IndexedColumns.isBinaryOrdered(string)
    case _ => true
  }

  /**
   * Whether the values that Spark reads from the column may depend on the temporal settings. INT96
   * values do, unless the file records that its INT96 values are not rebased and comes from a
   * writer whose INT96 values Spark does not convert between time zones. Dates and INT64 timestamps
   * do, unless the file itself records that these values are not rebased (see ParquetOrigin).
   * Timestamps that are not adjusted to UTC always do.
   */
  def scanDependsOnSettings(leaf: PrimitiveType, origin: ParquetOrigin): Boolean =
    (leaf.getPrimitiveTypeName, leaf.getLogicalTypeAnnotation) match {
      case (INT96, _) => !(origin.int96ByFile && origin.byParquetMr)
      case (_, _: DateLogicalTypeAnnotation) => !origin.datetimeByFile
      case (_, timestamp: TimestampLogicalTypeAnnotation) =>
        !timestamp.isAdjustedToUTC || !origin.datetimeByFile
      case _ => false
    }

  /**
   * The bounds of a column. Every row group must contain at least one value and must record bounds.
   */
  def bounds(
      groups: Seq[Statistics[_]],
      leaf: PrimitiveType,
      origin: ParquetOrigin,
      column: FooterColumn,
      nullCount: Long): FooterAnswer = {
    val scan = FooterAnswer.Scan(scanDependsOnSettings(leaf, origin))
    def answer(least: Any, greatest: Any, exact: Boolean): FooterAnswer =
      FooterAnswer.bounded(least, greatest, exact, nullCount)
    column.dataType match {
      // Writers differ in whether the bounds include NaN, and in the sign of bounds that are zero.
      case FloatType | DoubleType => scan
      case StringType | BinaryType if leaf.getPrimitiveTypeName == BINARY =>
        // Parquet and Spark both compare strings and binary values as unsigned bytes. Writers may
        // truncate bounds, but truncated bounds still enclose the values. If the bounds are equal,
        // all values are equal.
        val least = groups.map(bytesOf(_, least = true)).reduce(lesser)
        val greatest = groups.map(bytesOf(_, least = false)).reduce(greater)
        TruncatedBounds.of(least, greatest, column.dataType == StringType) match {
          case Some((a, b)) =>
            val exact = TruncatedBounds.fits(least) && java.util.Arrays.equals(least, greatest)
            answer(text(a, column.dataType), text(b, column.dataType), exact)
          case None => FooterAnswer.nullsOnly(nullCount)
        }
      case StringType | BinaryType => scan // fixed length
      case decimal: DecimalType => decimals(groups, leaf, decimal, origin, answer, scan)
      case BooleanType =>
        val pairs = groups.map(g => (boolean(g.genericGetMin), boolean(g.genericGetMax)))
        answer(pairs.forall(_._1), pairs.exists(_._2), exact = origin.byParquetMr)
      case DateType | TimestampType | TimestampNTZType =>
        temporal(groups, leaf, origin, column, answer)
      case _ if isSigned(leaf.getLogicalTypeAnnotation) =>
        val (least, greatest) = longs(groups)
        if (!fitsInto(least, column.dataType) || !fitsInto(greatest, column.dataType)) {
          FooterAnswer.Unknown // Spark would truncate values to fit column.dataType
        } else {
          answer(
            LongValue.toCatalyst(least, column.dataType),
            LongValue.toCatalyst(greatest, column.dataType),
            exact = origin.byParquetMr)
        }
      case _ => scan // unsigned integers, TIME
    }
  }

  /**
   * The bounds of dates and INT64 timestamps. If the file records that the values are not rebased,
   * or if `Calendars.isModern` is true for the smallest value, Spark reads the values as stored.
   * Otherwise, the column is scanned, because Spark reads the values as stored only under the
   * rebase mode CORRECTED. Under LEGACY, it reads different values, and under EXCEPTION, a query
   * fails.
   */
  private def temporal(
      groups: Seq[Statistics[_]],
      leaf: PrimitiveType,
      origin: ParquetOrigin,
      column: FooterColumn,
      answer: (Any, Any, Boolean) => FooterAnswer): FooterAnswer = {
    val annotation = leaf.getLogicalTypeAnnotation
    val plain = column.dataType match {
      case DateType => true
      case TimestampType => isUtc(annotation)
      case _ => !isUtc(annotation)
    }
    if (leaf.getPrimitiveTypeName == INT96 || !plain) {
      FooterAnswer.Scan(scanDependsOnSettings(leaf, origin))
    } else {
      val (least, greatest) = longs(groups)
      val factor = if (isMillis(annotation)) 1000L else 1L
      if (overflows(least, factor) || overflows(greatest, factor)) {
        FooterAnswer.Unknown
      } else {
        val a = LongValue.toCatalyst(least * factor, column.dataType)
        val b = LongValue.toCatalyst(greatest * factor, column.dataType)
        if (origin.datetimeByFile || Calendars.isModern(a, column.dataType)) {
          answer(a, b, origin.byParquetMr)
        } else {
          FooterAnswer.Scan(settingsDependent = true)
        }
      }
    }
  }

  /**
   * The bounds of decimals. The bounds in footers follow numerical order if the decimals are stored
   * as INT32 or INT64, or if parquet-mr stored them as FIXED_LEN_BYTE_ARRAY. In all other cases,
   * the column is scanned.
   */
  private def decimals(
      groups: Seq[Statistics[_]],
      leaf: PrimitiveType,
      decimal: DecimalType,
      origin: ParquetOrigin,
      answer: (Any, Any, Boolean) => FooterAnswer,
      scan: FooterAnswer): FooterAnswer = {
    val annotation = leaf.getLogicalTypeAnnotation
    def unscaled(value: Any): BigInteger = value match {
      case v: java.lang.Integer => BigInteger.valueOf(v.longValue)
      case v: java.lang.Long => BigInteger.valueOf(v)
      case v: Binary => new BigInteger(v.getBytes)
    }
    val wide = leaf.getPrimitiveTypeName == BINARY ||
      leaf.getPrimitiveTypeName == FIXED_LEN_BYTE_ARRAY && !origin.byParquetMr
    annotation match {
      case stored: DecimalLogicalTypeAnnotation if !wide =>
        val values = groups.flatMap(g => Seq(unscaled(g.genericGetMin), unscaled(g.genericGetMax)))
          .map(v => new JBigDecimal(v, stored.getScale))
        val ends = Seq(values.reduce(_ min _), values.reduce(_ max _))
        // Reading a value with more digits than its column declares yields null or fails.
        if (ends.exists(_.precision > stored.getPrecision)) {
          FooterAnswer.Unknown
        } else {
          val typed = ends.map(v => Decimal(v, decimal.precision, decimal.scale))
          answer(typed.head, typed.last, origin.byParquetMr)
        }
      case _ => scan
    }
  }

  private def longs(groups: Seq[Statistics[_]]): (Long, Long) = {
    def long(value: Any): Long = value match {
      case v: java.lang.Integer => v.longValue
      case v: java.lang.Long => v
    }
    (groups.map(g => long(g.genericGetMin)).min, groups.map(g => long(g.genericGetMax)).max)
  }

  private def boolean(value: Any): Boolean = value.asInstanceOf[java.lang.Boolean]

  private def bytesOf(group: Statistics[_], least: Boolean): Array[Byte] =
    (if (least) group.genericGetMin else group.genericGetMax).asInstanceOf[Binary].getBytes

  private def lesser(a: Array[Byte], b: Array[Byte]): Array[Byte] =
    if (ByteArray.compareBinary(a, b) <= 0) a else b

  private def greater(a: Array[Byte], b: Array[Byte]): Array[Byte] =
    if (ByteArray.compareBinary(a, b) >= 0) a else b

  private def text(bytes: Array[Byte], dataType: DataType): Any =
    if (dataType == BinaryType) bytes else UTF8String.fromBytes(bytes)

  private def fitsInto(value: Long, dataType: DataType): Boolean = dataType match {
    case ByteType => value == value.toByte
    case ShortType => value == value.toShort
    case IntegerType | _: YearMonthIntervalType => value == value.toInt
    case _ => true
  }

  private def overflows(value: Long, factor: Long): Boolean =
    value > Long.MaxValue / factor || value < Long.MinValue / factor

  private def isSigned(annotation: LogicalTypeAnnotation): Boolean = annotation match {
    case null => true
    case int: IntLogicalTypeAnnotation => int.isSigned
    case _ => false
  }

  /**
   * Whether Spark uses this type for unsigned integers of the column's width. If so, the type can
   * represent all of them.
   */
  private def unsignedFits(annotation: LogicalTypeAnnotation, dataType: DataType): Boolean =
    annotation match {
      case int: IntLogicalTypeAnnotation if !int.isSigned =>
        (int.getBitWidth, dataType) match {
          case (8, ShortType) | (16, IntegerType) | (32, LongType) => true
          case (64, UnsignedLong) => true
          case _ => false
        }
      case _ => false
    }

  private def isMicrosOrMillis(annotation: LogicalTypeAnnotation): Boolean = annotation match {
    case timestamp: TimestampLogicalTypeAnnotation => timestamp.getUnit != TimeUnit.NANOS
    case _ => false
  }

  private def isMillis(annotation: LogicalTypeAnnotation): Boolean = annotation match {
    case timestamp: TimestampLogicalTypeAnnotation => timestamp.getUnit == TimeUnit.MILLIS
    case _ => false
  }

  private def isUtc(annotation: LogicalTypeAnnotation): Boolean = annotation match {
    case timestamp: TimestampLogicalTypeAnnotation => timestamp.isAdjustedToUTC
    case _ => false
  }

  private def isDecimal(annotation: LogicalTypeAnnotation): Boolean =
    annotation.isInstanceOf[DecimalLogicalTypeAnnotation]

  /** Whether the Spark type has the same scale and enough digits for all values of the column. */
  private def holds(annotation: LogicalTypeAnnotation, decimal: DecimalType): Boolean =
    annotation match {
      case stored: DecimalLogicalTypeAnnotation =>
        stored.getScale == decimal.scale && stored.getPrecision <= decimal.precision
      case _ => false
    }

  /** Whether Spark reads the bytes of a column with this annotation unchanged. */
  private def isText(annotation: LogicalTypeAnnotation): Boolean = annotation match {
    case null => true
    case _: StringLogicalTypeAnnotation | _: EnumLogicalTypeAnnotation |
        _: JsonLogicalTypeAnnotation => true
    case _ => false
  }
}
