package io.pyzorder.common

import java.io.{FileNotFoundException, IOException}

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

class StoreFailuresSuite extends AnyFunSuite {

  private val root = new Path("/t")

  private def condition(failure: Exception): String =
    intercept[ZOrderException](StoreFailures.translate(root)(throw failure)).condition

  for ((failure, expected) <- Seq(
      new IOException("No space left on device") -> "ZORDER_NO_SPACE",
      new IOException("write", new IOException("Permission denied")) -> "ZORDER_NOT_WRITABLE",
      new FileNotFoundException("/t/a.parquet") -> "ZORDER_CONFLICT",
      new IOException("Connection reset\n\tat x.y.Z") -> "ZORDER_STORE_FAILED",
      ZOrderErrors.pathNotFound("/t") -> "ZORDER_PATH_NOT_FOUND")) {
    test(s"$failure is reported as $expected") {
      assert(condition(failure) == expected)
    }
  }

  test("the message contains the first line of the store's message") {
    val error = intercept[ZOrderException](
      StoreFailures.translate(root)(throw new IOException("Connection reset.\n\tat x.y.Z")))
    assert(error.getMessage.contains("ran on /t: Connection reset. The rows"))
  }

  test("a failure that does not come from the store is thrown unchanged") {
    assertThrows[NoSuchElementException](StoreFailures.translate(root)(None.get))
  }
}
