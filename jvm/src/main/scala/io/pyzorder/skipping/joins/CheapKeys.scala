package io.pyzorder.skipping.joins

import org.apache.spark.sql.catalyst.expressions.{IsNotNull, PredicateHelper}
import org.apache.spark.sql.execution.{FileSourceScanExec, FilterExec, LocalTableScanExec}
import org.apache.spark.sql.execution.{RangeExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeLike}

import io.pyzorder.skipping.files.ZOrderFileIndex

/**
 * Decides whether a scan that could start immediately should wait for the keys of a broadcast.
 *
 * The broadcast side must be selective: without a condition on its rows, it probably contains all
 * keys. It must also be able to start immediately, and read at most half as many bytes as the scan.
 * Waiting then takes no longer than the scan itself would. The broadcast side must not contain a
 * scan that itself waits for keys. None of these conditions applies if the broadcast has already
 * been executed. In any case, the broadcast side must have the same rows each time it is executed,
 * because the scan cannot determine whether the join reuses the same broadcast.
 */
private[joins] object CheapKeys extends PredicateHelper {

  /** Why the scan should not wait, or None if it should. */
  def obstacle(keys: BroadcastKeys, index: ZOrderFileIndex): Option[String] = {
    val rows = keys.build.rows
    if (!keys.isRepeatable) Some("its rows may differ each time it is executed")
    else if (keys.build.isDone) None
    else if (!startsAtOnce(rows)) Some("it needs a shuffle or waits for keys itself")
    else if (!isSelective(rows)) Some("it has no condition")
    else if (rows.collectLeaves().map(bytesOf).sum * 2 > index.sizeInBytes)
      Some("it reads more than half as many bytes as the scan")
    else None
  }

  private def startsAtOnce(plan: SparkPlan): Boolean = !plan.exists {
    case _: ShuffleExchangeLike | _: ScanWithKeysExec => true
    case _ => false
  }

  private def isSelective(plan: SparkPlan): Boolean = plan.exists {
    case filter: FilterExec =>
      splitConjunctivePredicates(filter.condition).exists(!_.isInstanceOf[IsNotNull])
    case scan: FileSourceScanExec => scan.partitionFilters.exists(!_.isInstanceOf[IsNotNull])
    case _: LocalTableScanExec => true
    case _ => false
  }

  private def bytesOf(leaf: SparkPlan): BigInt = leaf match {
    case scan: FileSourceScanExec => scan.relation.location.sizeInBytes
    case _: LocalTableScanExec | _: RangeExec | _: QueryStageExec | _: ReusedExchangeExec => 0
    case _ => Long.MaxValue
  }
}
