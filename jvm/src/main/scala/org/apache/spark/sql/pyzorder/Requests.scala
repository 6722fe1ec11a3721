package org.apache.spark.sql.pyzorder

import java.util.concurrent.{Callable, ExecutionException}

import org.apache.hadoop.fs.FileSystem
import org.apache.spark.util.ThreadUtils

/** Sends requests to a store. */
object Requests {

  /** The maximum number of requests that wait for a remote store at the same time. */
  private val AtOnce = 32

  /**
   * Returns the result of `send` for each item, in the order of the items. Requests to a remote
   * store are sent by several threads, because they spend most of their time waiting. Requests to a
   * local disk are sent one after another. If a request fails, its exception is propagated.
   *
   * The threads must not belong to a ForkJoinPool. When a request waits for a future, as S3A's
   * requests do, such a pool starts another thread, which sends the next request. With 12,500
   * files, that led to thousands of threads.
   */
  def inParallel[A, B](fs: FileSystem, items: Seq[A])(send: A => B): Seq[B] = {
    val every = items.toVector // `items` may be lazy, but requests are sent now
    if (every.length <= 1 || fs.getUri.getScheme == "file") every.map(send)
    else {
      val threads =
        ThreadUtils.newDaemonFixedThreadPool(math.min(every.length, AtOnce), "zorder-request")
      try {
        val sent = every.map(item => threads.submit((() => send(item)): Callable[B]))
        sent.map(_.get())
      } catch { case failure: ExecutionException => throw failure.getCause }
      finally threads.shutdownNow()
    }
  }
}
