package io.pyzorder.api

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.storage.CreateIfAbsent

/** Probes the capabilities of a store. */
object StoreApi {

  /**
   * Tries twice to create a file at the path `text`, then deletes the file. Returns whether only
   * the first attempt succeeded.
   */
  def createsIfAbsent(session: shim.SparkSession, text: String): Boolean = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val path = new Path(text)
    val store = CreateIfAbsent.of(hadoopConf, path)
    try store.create(path, "first".getBytes) && !store.create(path, "second".getBytes)
    finally path.getFileSystem(hadoopConf).delete(path, false)
  }
}
