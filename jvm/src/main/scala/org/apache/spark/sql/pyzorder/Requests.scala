package org.apache.spark.sql.pyzorder

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.FileSystem
import org.apache.spark.util.ThreadUtils

/** Sends requests to a store. */
object Requests {

  /** The maximum number of requests that wait for a remote store at the same time. */
  private val AtOnce = 32

  /**
   * Returns the result of `send` for each item, in the order of the items. For a local disk, one
   * thread per core is enough. Requests to a remote store use more threads, because they spend most
   * of their time waiting.
   */
  def inParallel[A, B](fs: FileSystem, items: Seq[A])(send: A => B): Seq[B] =
    if (items.length <= 1) items.map(send)
    else if (fs.getUri.getScheme == "file") {
      items.asJava.parallelStream().map[B](item => send(item)).iterator().asScala.toList
    } else ThreadUtils.parmap(items, "zorder-request", math.min(items.length, AtOnce))(send)
}
