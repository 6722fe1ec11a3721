package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.FileSourceScanExec

import io.pyzorder.common.ZOrderConf

/**
 * Records, in a scan's node, the broadcast keys that the scan does not wait for, and why. The tags
 * of a node are copied with the node. The records are only for display.
 */
private[joins] object NotAwaited {

  private val Tag = TreeNodeTag[Map[Expression, String]]("zorder.notAwaited")

  /** What is known if there is no record. */
  val Starts = "the scan starts before the key is known, and does not wait for it"

  /** The reason if the scan has waited in vain for as long as the setting permits. */
  def late(limit: Long): String =
    if (limit == 0) s"$Starts: ${ZOrderConf.joinMaxWait.key} is 0s"
    else s"the key is not known within $limit ms, the limit set by ${ZOrderConf.joinMaxWait.key}"

  /** @param column the scan's column that must equal the key, without expression IDs */
  def add(scan: FileSourceScanExec, column: Expression, why: String): Unit =
    scan.setTagValue(Tag, scan.getTagValue(Tag).getOrElse(Map.empty) + (column -> why))

  /** Why the scan does not wait for a key that the column must equal. */
  def why(scan: FileSourceScanExec, column: Expression): Option[String] =
    for {
      known <- scan.getTagValue(Tag)
      plain <- JoinedKey.columnOf(scan, column)
      reason <- known.get(plain)
    } yield reason
}
