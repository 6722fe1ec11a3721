package io.pyzorder.index.collect

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.orc.{OrcFile, Reader, TypeDescription}
import org.apache.orc.{BooleanColumnStatistics, ColumnStatistics => OrcStatistics}
import org.apache.orc.{DateColumnStatistics, DecimalColumnStatistics, IntegerColumnStatistics}
import org.apache.orc.StringColumnStatistics
import org.apache.orc.TypeDescription.Category
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.pyzorder.index.model.{Calendars, IndexedColumns, LongValue, TruncatedBounds}

/** Reads statistics from ORC footers if they provably describe the values that Spark reads. */
private[index] object OrcFooterStatistics {

  /**
   * Reads the requested statistics from the footer of one file. Returns None if the file has no
   * columns, because Spark does not read any rows from such a file. Propagates the reader's
   * exceptions.
   */
  def read(path: Path, conf: Configuration, question: FooterQuestion): Option[FileFooter] = {
    val reader = OrcFile.createReader(path, OrcFile.readerOptions(conf))
    try {
      val schema = reader.getSchema
      val names = Option(schema.getFieldNames).map(_.asScala.toList).getOrElse(Nil)
      if (names.isEmpty) {
        None
      } else {
        val numRecords = reader.getNumberOfRows
        // In files written by old Hive versions, the columns are named _col0, _col1, and so on.
        // Spark then finds columns by their position in the reader's schema, so the values depend
        // on that schema.
        val byPlace = names.forall(_.startsWith("_col"))
        Some(FileFooter(numRecords,
            question.columns.map { column =>
              if (byPlace) FooterAnswer.Unknown else answer(reader, numRecords, question, column)
            }))
      }
    } finally {
      reader.close()
    }
  }

  private def answer(
      reader: Reader,
      numRecords: Long,
      question: FooterQuestion,
      column: FooterColumn): FooterAnswer =
    find(reader.getSchema, column.path.toList, question) match {
      // As in FooterStatistics, readers whose schema does not include the column's default see
      // null.
      case Absent =>
        if (column.hasDefault) FooterAnswer.Unknown else FooterAnswer.allNull(numRecords)
      case Unclear => FooterAnswer.Unknown
      case Present(leaf) if !isReadable(leaf, column.dataType) => FooterAnswer.Unknown
      case Present(leaf) => ofLeaf(reader, numRecords, leaf, column)
    }

  private def ofLeaf(
      reader: Reader,
      numRecords: Long,
      leaf: TypeDescription,
      column: FooterColumn): FooterAnswer = {
    val scan = FooterAnswer.Scan(Calendars.isTemporal(column.dataType))
    val all = reader.getStatistics
    val statistics = if (leaf.getId < all.length) all(leaf.getId) else null
    // A writer that does not record statistics leaves all counts at 0. The count of the root column
    // reveals this, because it normally equals the number of rows.
    val counted = statistics != null && all(0).getNumberOfValues == numRecords &&
      statistics.getNumberOfValues <= numRecords
    if (!counted) {
      if (column.isChar) FooterAnswer.Unknown else scan
    } else {
      val nullCount = numRecords - statistics.getNumberOfValues
      if (statistics.getNumberOfValues == 0) FooterAnswer.allNull(numRecords)
      else if (!ParquetRules.hasBounds(column)) FooterAnswer.nullsOnly(nullCount)
      else bounds(reader, statistics, leaf, column, nullCount).getOrElse(scan)
    }
  }

  /**
   * The bounds of a column that has values, or None if Spark must scan it. FLOAT and DOUBLE columns
   * are always scanned, because writers differ in their treatment of NaN and the sign of zero.
   * TIMESTAMP columns are scanned because their bounds may differ from the values in time zone and
   * precision. BINARY columns are scanned because ORC does not keep bounds for them.
   */
  private def bounds(
      reader: Reader,
      statistics: OrcStatistics,
      leaf: TypeDescription,
      column: FooterColumn,
      nullCount: Long): Option[FooterAnswer] = {
    val byOrcJava = Option(reader.getSoftwareVersion).exists(_.startsWith("ORC Java"))
    def answer(least: Any, greatest: Any): Option[FooterAnswer] =
      Some(FooterAnswer.bounded(least, greatest, byOrcJava, nullCount))
    (statistics, column.dataType) match {
      case (numbers: IntegerColumnStatistics, ByteType | ShortType | IntegerType | LongType |
            _: YearMonthIntervalType | _: DayTimeIntervalType)
          if numbers.getMinimum <= numbers.getMaximum =>
        val ends = Seq(numbers.getMinimum, numbers.getMaximum)
        // A value that does not fit into column.dataType would be read as null.
        if (ends.exists(!fitsInto(_, column.dataType))) Some(FooterAnswer.Unknown)
        else answer(
          LongValue.toCatalyst(numbers.getMinimum, column.dataType),
          LongValue.toCatalyst(numbers.getMaximum, column.dataType))
      case (booleans: BooleanColumnStatistics, BooleanType) =>
        val trues = booleans.getTrueCount
        val values = statistics.getNumberOfValues
        if (trues < 0 || trues > values) None else answer(trues == values, trues > 0)
      // Dates are stored in the hybrid or the proleptic calendar. The two calendars agree on dates
      // for which `isModern` is true.
      case (dates: DateColumnStatistics, DateType)
          if dates.getMinimumDayOfEpoch <= dates.getMaximumDayOfEpoch &&
            isInt(dates.getMinimumDayOfEpoch) && isInt(dates.getMaximumDayOfEpoch) &&
            Calendars.isModern(dates.getMinimumDayOfEpoch.toInt, DateType) =>
        answer(dates.getMinimumDayOfEpoch.toInt, dates.getMaximumDayOfEpoch.toInt)
      case (decimals: DecimalColumnStatistics, d: DecimalType)
          if decimals.getMinimum != null && decimals.getMaximum != null =>
        val ends = Seq(decimals.getMinimum, decimals.getMaximum).map(_.bigDecimalValue)
        if (ends.exists(v => v.scale > d.scale || v.precision - v.scale > d.precision - d.scale)) {
          None
        } else {
          val typed = ends.map(v => Decimal(v.setScale(d.scale), d.precision, d.scale))
          answer(typed.head, typed.last)
        }
      case (strings: StringColumnStatistics, StringType)
          if byOrcJava && reader.getWriterVersion.includes(OrcFile.WriterVersion.ORC_101) =>
        text(strings.getMinimum).flatMap { least =>
          text(strings.getMaximum).flatMap(greatest => ofText(least, greatest, nullCount))
        }
      case _ => None
    }
  }

  /**
   * The bytes of a bound, or None if the footer does not contain the bound unchanged. If the writer
   * truncated a bound, the reader does not return it. Bytes that are not valid UTF-8 have been
   * replaced by U+FFFD, which sorts differently.
   */
  private def text(bound: String): Option[Array[Byte]] =
    Option(bound).filter(_.indexOf('\ufffd') < 0).map(UTF8String.fromString(_).getBytes)

  private def ofText(
      least: Array[Byte],
      greatest: Array[Byte],
      nullCount: Long): Option[FooterAnswer] =
    TruncatedBounds.of(least, greatest, isText = true).map { case (a, b) =>
      FooterAnswer.bounded(
        UTF8String.fromBytes(a),
        UTF8String.fromBytes(b),
        exact = TruncatedBounds.fits(least) && TruncatedBounds.fits(greatest),
        nullCount)
    }

  /**
   * Whether reading the column as this type preserves all values, even if ORC has to convert them.
   */
  private def isReadable(leaf: TypeDescription, dataType: DataType): Boolean =
    (leaf.getCategory, dataType) match {
      case (Category.BOOLEAN, BooleanType) => true
      case (Category.BYTE | Category.SHORT | Category.INT | Category.LONG,
            ByteType | ShortType | IntegerType | LongType) => true
      case (Category.INT, _: YearMonthIntervalType) => true
      case (Category.LONG, _: DayTimeIntervalType | TimestampNTZType) => true
      case (Category.LONG, time) if IndexedColumns.isTime(time) => true
      case (Category.FLOAT, FloatType) | (Category.DOUBLE, DoubleType) => true
      case (Category.DATE, DateType) => true
      case (Category.TIMESTAMP | Category.TIMESTAMP_INSTANT, TimestampType) => true
      case (Category.DECIMAL, d: DecimalType) =>
        leaf.getScale == d.scale && leaf.getPrecision <= d.precision
      case (Category.STRING | Category.VARCHAR | Category.CHAR, _: StringType) => true
      case (Category.BINARY, BinaryType) => true
      case _ => false
    }

  private def fitsInto(value: Long, dataType: DataType): Boolean = dataType match {
    case ByteType => value == value.toByte
    case ShortType => value == value.toShort
    case IntegerType | _: YearMonthIntervalType => isInt(value)
    case _ => true
  }

  private def isInt(value: Long): Boolean = value == value.toInt

  private sealed trait Found
  private case object Absent extends Found
  private case object Unclear extends Found
  private final case class Present(leaf: TypeDescription) extends Found

  /**
   * Finds the leaf from which Spark reads a column. At each level of the path, at most one field
   * may have the requested name. If several fields have that name, a read fails or picks one of
   * them.
   */
  private def find(
      struct: TypeDescription,
      path: List[String],
      question: FooterQuestion): Found = {
    val places = struct.getFieldNames.asScala.toList.zipWithIndex.collect {
      case (name, place) if question.sameName(name, path.head) => place
    }
    places match {
      case Nil => Absent
      case place :: Nil =>
        val child = struct.getChildren.get(place)
        if (path.tail.isEmpty) Present(child)
        else if (child.getCategory == Category.STRUCT) find(child, path.tail, question)
        else Unclear
      case _ => Unclear
    }
  }
}
