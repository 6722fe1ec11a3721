package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.{Decimal, DecimalType}

import io.pyzorder.index.memory.{ColumnArrays, DoubleBounds, IndexSnapshot, LongBounds}
import io.pyzorder.index.model.{ExpressionColumn, IndexedColumn}
import io.pyzorder.index.sketch.{Sketches, ValueHash}
import io.pyzorder.skipping.predicate.{BoundComparison, ColumnStatisticsView, FileTest}
import io.pyzorder.skipping.predicate.{FilterColumn, ListedValuesFilter}

/**
 * The statistics of one column in a snapshot.
 *
 * @param indexed the column in the snapshot
 * @param reading how the scan reads the column. Bounds that depend on temporal settings are unknown
 *                for a file whose entry was made under different settings
 */
final class IndexedStatistics(
    snapshot: IndexSnapshot,
    indexed: IndexedColumn,
    column: ColumnArrays,
    reading: ColumnReading)
    extends ColumnStatisticsView {

  override val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(column.dataType)

  private val isExpression = ExpressionColumn.matches(indexed)

  private val floating = FilterColumn.isFloating(column.dataType)

  override def bounded(file: Int): Boolean = column.bounded(file) && agrees(file)

  override def empty(file: Int): Boolean = column.empty(file) && agrees(file)

  override def nanSeen(file: Int): Boolean =
    floating &&
      (column.nanSeen(file) || !column.bounded(file) && !column.empty(file) || !isUsable(file))

  override def mayBeNull(file: Int): Boolean = column.nullCount(file) != 0 || !isUsable(file)

  override def mayHaveValue(file: Int): Boolean =
    !isUsable(file) ||
      column.nullCount(file) != snapshot.numRecords(file) && (!empty(file) || nanSeen(file))

  /**
   * Whether anything is known about the file under the scan's settings. Settings do not change
   * which values of a column are null or NaN, but may change which values of an expression are.
   */
  private def isUsable(file: Int): Boolean = !isExpression || agrees(file)

  override def oneValue(file: Int): Boolean =
    bounded(file) && column.nullCount(file) == 0 && !nanSeen(file) &&
      ordering.equiv(min(file), max(file)) && !(floating && isZero(min(file)))

  private def isZero(value: Any): Boolean = DoubleBounds.toDouble(value) == 0.0

  override def min(file: Int): Any = column.minOf(file)

  override def max(file: Int): Any = column.maxOf(file)

  private def agrees(file: Int): Boolean =
    !column.settingsDependent(file) || snapshot.readSettings(file).temporal == reading.temporal

  /** Whether both bounds are known and are themselves values in the file. */
  def exact(file: Int): Boolean = bounded(file) && column.exact(file)

  /** The number of nulls, or -1 if unknown. */
  def nullCount(file: Int): Long = if (agrees(file)) column.nullCount(file) else -1L

  override def against(value: Any): BoundComparison = (column.bounds, value) match {
    case (bounds: LongBounds, _) if hasColumnsScale(value) =>
      val long = LongBounds.toLong(value)
      new BoundComparison {
        override def min(file: Int): Int = java.lang.Long.compare(bounds.mins(file), long)
        override def max(file: Int): Int = java.lang.Long.compare(bounds.maxs(file), long)
      }
    case (bounds: DoubleBounds, _) =>
      val double = DoubleBounds.toDouble(value)
      new BoundComparison { // no NaN on either side; -0.0 equals 0.0
        override def min(file: Int): Int = compare(bounds.mins(file), double)
        override def max(file: Int): Int = compare(bounds.maxs(file), double)
      }
    case _ => super.against(value)
  }

  override def enclosesOneOf(sorted: Array[Any]): FileTest = column.bounds match {
    case bounds: LongBounds if sorted.forall(hasColumnsScale) =>
      val longs = sorted.map(LongBounds.toLong)
      new FileTest {
        override def mayMatch(file: Int): Boolean = {
          val found = java.util.Arrays.binarySearch(longs, bounds.mins(file))
          val next = if (found >= 0) found else -found - 1
          next < longs.length && longs(next) <= bounds.maxs(file)
        }
      }
    case _ => super.enclosesOneOf(sorted)
  }

  /** How values are hashed for sketches; None if there are no sketches to use. */
  private def hash: Option[ValueHash] =
    if (reading.sketched && (snapshot.sketches ne Sketches.None)) ValueHash.of(indexed.dataType)
    else None

  /** Whether some files have a sketch of the column. */
  private[files] def hasSketches: Boolean =
    hash.isDefined && snapshot.sketches.sizeOf(indexed).files > 0

  /** Whether a test of this column may use sketches. */
  @volatile private[files] var useSketches: Boolean = false

  /**
   * A file's sketch was made under the same settings as its bounds, and is used only if the bounds
   * are valid.
   */
  override def mayHold(values: Seq[Any]): FileTest =
    hash.fold(super.mayHold(values)) { hash =>
      useSketches = true
      lazy val hashes = Sketches.sorted(
        values.flatMap(ValueHash.ofLiteral(_, indexed.dataType, hash)).toArray)
      new FileTest {
        override def mayMatch(file: Int): Boolean = snapshot.mayHold(file, indexed, hashes)
      }
    }

  /** Whether some files have a list of the column's values. */
  private[files] def hasLists: Boolean =
    hash.isDefined && snapshot.sketches.sizeOf(indexed).lists > 0

  /** Whether at least half of the files have a list of the column's values. */
  private[files] def mostHaveLists: Boolean =
    hash.isDefined && snapshot.sketches.sizeOf(indexed).lists * 2L >= snapshot.numFiles

  override def someValue(
      filter: ListedValuesFilter,
      passes: Any => Boolean): Option[FileTest] =
    if (hash.isEmpty) None
    else snapshot.someValue(indexed, filter, passes).map { test =>
      useSketches = true
      new FileTest {
        override def mayMatch(file: Int): Boolean = !bounded(file) || test(file)
      }
    }

  private lazy val listed: Int => Option[Seq[Any]] =
    (if (hash.isEmpty) None else snapshot.valuesOf(indexed)).getOrElse(_ => None)

  /**
   * All distinct values of the column in the file, including null. None if the index does not list
   * them.
   */
  def distinct(file: Int): Option[Seq[Any]] = {
    val nulls = nullCount(file)
    if (!bounded(file) || nulls < 0) None
    else listed(file).filter(_.nonEmpty).map(values => if (nulls > 0) null +: values else values)
  }

  private def compare(a: Double, b: Double): Int = if (a < b) -1 else if (a > b) 1 else 0

  /**
   * The unscaled values of two decimals are comparable only if the decimals have the same scale.
   */
  private def hasColumnsScale(value: Any): Boolean = (value, column.dataType) match {
    case (d: Decimal, t: DecimalType) =>
      d.scale == t.scale && d.precision <= Decimal.MAX_LONG_DIGITS
    case _ => true
  }
}
