package io.pyzorder

import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.skipping.{SkippingStrategy, WrapFileIndexes}

/** The map of the project: everything pyzorder adds to a Spark session is named on this page. */
class ZOrderExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    ZOrderConf.all // registers the settings
    extensions.injectPreCBORule(session => WrapFileIndexes(session.asInstanceOf[shim.SparkSession]))
    extensions.injectPlannerStrategy(_ => SkippingStrategy)
  }
}
