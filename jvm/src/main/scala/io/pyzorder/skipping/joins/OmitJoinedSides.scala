package io.pyzorder.skipping.joins

import scala.util.control.NonFatal

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{LeafExecNode, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec

/**
 * Removes from scans their copies of broadcast sides whose join is in the same stage of adaptive
 * execution. Spark starts such a stage only after the join's broadcast, so the scan need not wait
 * for it separately. With two copies in the plan, Spark would report a broadcast that fails as two
 * failures, and hide the cause. ApplyJoinKeys replaces the placeholders by the joins' broadcasts.
 *
 * The rule runs last, because the other rules look for the broadcasts that scans wait for.
 */
object OmitJoinedSides extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan =
    try {
      val waiting = LimitWaits.awaited(plan, isAdaptive = true)
      plan.transform { case scan: ScanWithKeysExec =>
        waiting.find(_._1 eq scan).fold[SparkPlan](scan) { case (_, awaited) =>
          scan.withSides(side => if (awaited.exists(_ eq side)) side else omitted(side))
        }
      }
    } catch {
      case NonFatal(failure) =>
        logDebug("Scans wait for copies of the broadcasts of joins in their own stage", failure)
        plan
    }

  /** A side that has been executed cannot fail. */
  private def omitted(side: SparkPlan): SparkPlan = side match {
    case stage: QueryStageExec if stage.isMaterialized => side
    case _ => JoinedSideExec(side.output)(side)
  }
}

/**
 * The place of a broadcast side whose join is in the stage of the scan.
 *
 * @param side the scan's copy of the broadcast side, which is not executed
 */
private[joins] final case class JoinedSideExec(
    override val output: Seq[Attribute])(
    @transient val side: SparkPlan)
    extends LeafExecNode {

  override def nodeName: String = "ZOrderJoinedSide"

  override protected def otherCopyArgs: Seq[AnyRef] = Seq(side)

  /** Scans with and without the placeholder are equal, and so are the exchanges above them. */
  override protected def doCanonicalize(): SparkPlan = side.canonicalized

  override protected def doExecute(): RDD[InternalRow] =
    throw new UnsupportedOperationException(s"$nodeName has no rows")
}
