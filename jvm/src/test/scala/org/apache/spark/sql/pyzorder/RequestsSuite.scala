package org.apache.spark.sql.pyzorder

import java.io.IOException
import java.net.URI
import java.util.concurrent.{CompletableFuture, TimeUnit}
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.fs.RawLocalFileSystem
import org.scalatest.funsuite.AnyFunSuite

class RequestsSuite extends AnyFunSuite {

  private val remote = new RawLocalFileSystem {
    override def getUri: URI = URI.create("remote:///")
  }

  /** Waits for a future, as the requests of S3A do, and counts the requests that wait. */
  private final class Store {
    private val waiting = new AtomicInteger
    val most = new AtomicInteger

    def send(item: Int): Int = {
      val now = waiting.incrementAndGet()
      most.accumulateAndGet(now, (a, b) => math.max(a, b))
      val response = new CompletableFuture[Int]
      response.completeOnTimeout(-item, 10, TimeUnit.MILLISECONDS)
      try response.get()
      finally waiting.decrementAndGet()
    }
  }

  test("a limited number of requests wait at the same time") {
    val store = new Store
    assert(Requests.inParallel(remote, 1 to 2000)(store.send) == (1 to 2000).map(-_))
    assert(store.most.get > 8 && store.most.get <= 32)
  }

  test("requests to a local disk are sent one after another") {
    val store = new Store
    assert(Requests.inParallel(new RawLocalFileSystem, 1 to 20)(store.send) == (1 to 20).map(-_))
    assert(store.most.get == 1)
  }

  test("the exception of a request is propagated") {
    val failure = new IOException("no")
    def send(item: Int): Int = if (item == 7) throw failure else item
    assert(intercept[IOException](Requests.inParallel(remote, 1 to 20)(send)) eq failure)
  }
}
