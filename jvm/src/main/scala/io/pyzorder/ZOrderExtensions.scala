package io.pyzorder

import org.apache.spark.sql.SparkSessionExtensions

/** The map of the project: everything pyzorder adds to a Spark session is named on this page. */
class ZOrderExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = {
    ZOrderConf.all // registers the settings
  }
}
