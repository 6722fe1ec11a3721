package io.pyzorder.layout.select

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.{ZOrderConf, ZOrderErrors}
import io.pyzorder.publish.journal.LayoutRecord

/**
 * How an OPTIMIZE lays out files. The session's settings and the table's properties take precedence
 * over the settings of the last OPTIMIZE, which take precedence over the defaults.
 *
 * @param remembered settings of the last OPTIMIZE; None if there was none or if its settings are
 *                   unknown
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

  /** Whether z-values interleave the bits of the values rather than those of their ranks. */
  val isDirect: Boolean = method == "direct" && curve != "linear"

  val rewriteFactor: Double = ZOrderConf.rewriteFactor.get(conf, properties)

  /** Whether the session or a table property sets the target file size. */
  val isSizeChosen: Boolean = ZOrderConf.targetFileSize.chosen(conf, properties).isDefined

  private val chosenSize: Option[Long] = ZOrderConf.targetFileSize.chosen(conf, properties)
    .orElse(remembered.flatMap(_.targetFileSize))

  /**
   * The target size of a new file in bytes. A size that is remembered from an earlier OPTIMIZE may
   * be forged, so it is ignored if it would result in too many files.
   *
   * @param tableBytes  the total size of the table's files in bytes; not evaluated if a setting
   *                    specifies the target size
   * @param isClustered whether there are clustering columns, so that files can be skipped
   */
  def targetSize(tableBytes: => Long, isClustered: Boolean): Long =
    chosenSize.filter(size => isSizeChosen || tableBytes / size < MaxRememberedFiles)
      .getOrElse(if (isClustered) adaptive(tableBytes) else Largest)

  /** The parameters of this OPTIMIZE, which become the defaults of the next one. */
  def record(columns: Seq[Either[String, Seq[String]]]): LayoutRecord =
    LayoutRecord(columns, chosenSize, method, curve)
}

object LayoutSettings {

  private val MaxRememberedFiles = 100000L
  private val Largest = ZOrderConf.targetFileSize.defaultValue

  /**
   * The number of files to divide a table into, unless the files would be too small or too large.
   */
  private val Files = 32L

  /**
   * The smallest default target size. With smaller files, the cost of opening them exceeds the
   * savings from skipping.
   */
  private[pyzorder] val Smallest: Long = 1L << 20

  /**
   * The default target size. Even a small table gets several files, because queries can rarely skip
   * a table's only file.
   */
  private def adaptive(tableBytes: Long): Long = {
    val files = math.max(1L, math.min(Files, tableBytes / Smallest))
    math.min(Largest, math.max(Smallest, (tableBytes + files - 1) / files))
  }
}
