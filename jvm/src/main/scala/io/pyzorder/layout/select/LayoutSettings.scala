package io.pyzorder.layout.select

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.{ZOrderConf, ZOrderErrors}
import io.pyzorder.publish.journal.LayoutRecord

/**
 * How an OPTIMIZE lays files out: as the session or the table's property says, else as the last
 * OPTIMIZE was given it, else by the defaults.
 *
 * @param remembered of the last OPTIMIZE; None: there was none, or nothing is known of it
 */
final class LayoutSettings(
    conf: SQLConf,
    properties: Map[String, String],
    remembered: Option[LayoutRecord]) {
  import LayoutSettings._

  /** `zorder`, `hilbert` or `linear`. */
  val curve: String = ZOrderConf.curve.chosen(conf, properties)
    .orElse(remembered.map(_.curve)).getOrElse(ZOrderConf.curve.default)

  private val chosenMethod = ZOrderConf.method.chosen(conf, properties)
  if (chosenMethod.contains("direct") && curve == "hilbert") {
    throw ZOrderErrors.invalidSetting(
      ZOrderConf.curve.key, curve, s"It needs ${ZOrderConf.method.key}=boundaries.")
  }

  private val method: String = chosenMethod
    .orElse(remembered.map(_.method).filter(_ => curve != "hilbert"))
    .getOrElse(ZOrderConf.method.default)

  /** z-values of the values' own bits. */
  val isDirect: Boolean = method == "direct" && curve != "linear"

  val rewriteFactor: Double = ZOrderConf.rewriteFactor.get(conf, properties)

  /** Whether the session, or the table's property, sets the size of files. */
  val isSizeChosen: Boolean = ZOrderConf.targetFileSize.chosen(conf, properties).isDefined

  private val chosenSize: Option[Long] = ZOrderConf.targetFileSize.chosen(conf, properties)
    .orElse(remembered.flatMap(_.targetFileSize))

  /**
   * Bytes of a file. What was remembered may be forged: it makes no more than a bounded number of
   * files.
   *
   * @param tableBytes of all the table's files; asked for only where no size is known
   * @param isClustered whether there are clustering columns, by which files can be skipped
   */
  def targetSize(tableBytes: => Long, isClustered: Boolean): Long =
    chosenSize.filter(size => isSizeChosen || tableBytes / size < MaxRememberedFiles)
      .getOrElse(if (isClustered) adaptive(tableBytes) else Largest)

  /** For the next OPTIMIZE. */
  def record(columns: Seq[Seq[String]]): LayoutRecord =
    LayoutRecord(columns, chosenSize, method, curve)
}

object LayoutSettings {

  private val MaxRememberedFiles = 100000L
  private val Largest = ZOrderConf.targetFileSize.defaultValue

  /** A table is cut into this number of files, where these are neither too small nor too large. */
  private val Files = 32L

  /** Smaller files cost more to open than skipping them saves. */
  private[pyzorder] val Smallest: Long = 1L << 20

  /** Small tables are cut into several files, too: nothing can be skipped of one. */
  private def adaptive(tableBytes: Long): Long = {
    val files = math.max(1L, math.min(Files, tableBytes / Smallest))
    math.min(Largest, math.max(Smallest, (tableBytes + files - 1) / files))
  }
}
