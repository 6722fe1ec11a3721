package io.pyzorder

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.commands.{ClaimDeltaStatements, ResolveZOrderStatements, TableFunctions}
import io.pyzorder.common.{EagerClasses, JarVersion, ZOrderConf}
import io.pyzorder.expressions.ZOrderFunctions
import io.pyzorder.metadataonly.{LimitStrategy, MetadataOnlyStrategy}
import io.pyzorder.parser.ZOrderSqlParser
import io.pyzorder.skipping.joins.{
  ApplyJoinKeys, LimitWaits, OmitJoinedSides, PruneByFileRanges, PruneByJoinKeys,
  PruneByRestrictedFiles
}
import io.pyzorder.skipping.plan.{CacheRelations, SkippingStrategy, WrapFileIndexes}
import io.pyzorder.workload.RecordWorkload
import io.pyzorder.write.{ClusteredRowsStrategy, PrepareWrites}

/**
 * Registers everything that pyzorder adds to a Spark session. This class is a good place to start
 * reading the code.
 */
class ZOrderExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    JarVersion.check()
    EagerClasses.load()
    ZOrderConf.all // registers the settings
    extensions.injectParser((_, next) => ZOrderSqlParser.before(next))
    TableFunctions.all.foreach(extensions.injectTableFunction)
    extensions.injectResolutionRule { session =>
      ClaimDeltaStatements(session.asInstanceOf[shim.SparkSession])
    }
    extensions.injectResolutionRule { session =>
      ResolveZOrderStatements(session.asInstanceOf[shim.SparkSession])
    }
    shim.injectEarlyRule(extensions, CacheRelations(_))
    extensions.injectPostHocResolutionRule { session =>
      PrepareWrites(session.asInstanceOf[shim.SparkSession])
    }
    extensions.injectPreCBORule(session => WrapFileIndexes(session.asInstanceOf[shim.SparkSession]))
    extensions.injectPreCBORule(session => RecordWorkload(session.asInstanceOf[shim.SparkSession]))
    joinRules(isAdaptive = true).foreach(rule => extensions.injectQueryStagePrepRule(_ => rule))
    extensions.injectQueryStageOptimizerRule(_ => ApplyJoinKeys)
    extensions.injectColumnar { _ =>
      new ColumnarRule { // the only extension point for plans without adaptive execution
        override def postColumnarTransitions: Rule[SparkPlan] = plan =>
          joinRules(isAdaptive = false).foldLeft(plan)((plan, rule) => rule(plan))
      }
    }
    extensions.injectPlannerStrategy { session =>
      MetadataOnlyStrategy(session.asInstanceOf[shim.SparkSession])
    }
    extensions.injectPlannerStrategy { session =>
      LimitStrategy(session.asInstanceOf[shim.SparkSession])
    }
    extensions.injectPlannerStrategy(_ => SkippingStrategy)
    extensions.injectPlannerStrategy(_ => ClusteredRowsStrategy)
    ZOrderFunctions.all.foreach(extensions.injectFunction)
  }

  /** The rules that pass the keys of joins to scans, in the order in which they run. */
  private def joinRules(isAdaptive: Boolean): Seq[Rule[SparkPlan]] = Seq(
    PruneByFileRanges(isAdaptive),
    PruneByJoinKeys(isAdaptive),
    PruneByRestrictedFiles,
    LimitWaits(isAdaptive)) ++ (if (isAdaptive) Seq(OmitJoinedSides) else Nil)
}
