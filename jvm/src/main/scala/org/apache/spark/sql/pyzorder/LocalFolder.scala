package org.apache.spark.sql.pyzorder

import java.io.File

import org.apache.spark.SparkEnv
import org.apache.spark.util.Utils

/** Temporary folders in one of Spark's own directories on the local disk. */
object LocalFolder {

  /** Runs `body` with a new folder, which is deleted afterwards. */
  def use[T](body: File => T): T = {
    val folder = Utils.createTempDir(Utils.getLocalDir(SparkEnv.get.conf), "pyzorder")
    try body(folder)
    finally Utils.deleteRecursively(folder)
  }
}
