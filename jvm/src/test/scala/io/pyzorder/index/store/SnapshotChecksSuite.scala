package io.pyzorder.index.store

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.common.ZOrderException
import io.pyzorder.storage.TableFolder

class SnapshotChecksSuite extends AnyFunSuite {

  private def refOf(numFiles: Int): SnapshotRef =
    SnapshotRef(
      new TableFolder(new Path("/t")), 1L, "id", "_snapshot-1-x", Long.MaxValue, 0L, numFiles, Nil,
      None, 0L)

  test("an index is rejected if objects for its entries would not fit into memory") {
    SnapshotChecks.objects(refOf(10), columns = 10)
    val failure = intercept[ZOrderException](
      SnapshotChecks.objects(refOf(Int.MaxValue), columns = 10))
    assert(failure.getMessage.contains("ZORDER_INDEX_TOO_LARGE"))
  }
}
