package io.pyzorder.publish.journal

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.TableIdentifier
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.storage.{FileRef, ProcessId}

class RecordsSuite extends AnyFunSuite {

  private val file = FileRef("day=1/part-0.parquet", 10, 20)
  private val table = TableIdentifier("sales", Some("db"))
  private val to = "sales-zorder-0123abcd"

  private val prepare =
    PrepareRecord("life", "OPTIMIZE", "me", ProcessId("host/boot", 7, 8), 9, 10)
  private val retire = RetireRecord("life", Seq(file), Seq(file.copy(size = 11)), Seq("", "day=1"))
  private val switch = SwitchRecord("life", table, to, Seq(FileRef("part-0.parquet", 10, 20)))
  private val partitions = PartitionsRecord(
    "life", table, to, Seq(PartitionMove(Map("day" -> "1"), "day=1", "day=1")), Seq(file))
  private val outcome = OutcomeRecord("life", commit = true, "me")

  /**
   * The kind of each record, its bytes, its content, and the function that reads records of its
   * kind.
   */
  private val records = Seq[(String, Array[Byte], Any, Array[Byte] => Option[Any])](
    ("prepare", Records.write(prepare), prepare, Records.prepare),
    ("retire", Records.write(retire), retire, Records.retire),
    ("switch", Records.write(switch), switch, Records.switch),
    ("partitions", Records.write(partitions), partitions, Records.partitions),
    ("outcome", Records.write(outcome), outcome, Records.outcome))

  for ((kind, bytes, record, read) <- records) {
    test(s"a record is read back: $kind") {
      assert(read(bytes) == Some(record))
      assert(Records.whole(bytes, kind) && Records.incarnation(bytes) == Some("life"))
    }
    test(s"a record that is cut short is not read: $kind") {
      assert(bytes.indices.forall(end => read(bytes.take(end)).isEmpty))
    }
    test(s"a record is not read as one of another kind: $kind") {
      for ((other, _, _, readOther) <- records if other != kind) assert(readOther(bytes).isEmpty)
    }
  }

  for (path <- Seq("../x", "/etc/x", "a/../b", "a//b", "./a", "")) {
    test(s"a record that names the file [$path] is rejected") {
      val hostile = Seq(file.copy(path = path))
      assert(Records.retire(Records.write(retire.copy(retire = hostile))).isEmpty)
      assert(Records.retire(Records.write(retire.copy(add = hostile))).isEmpty)
      assert(Records.switch(Records.write(switch.copy(read = hostile))).isEmpty)
      assert(Records.partitions(Records.write(partitions.copy(read = hostile))).isEmpty)
    }
  }

  for (name <- Seq("sales", "..", "a/sales-zorder-0123abcd", "sales-zorder-0123abcdX")) {
    test(s"a switch to the folder [$name] is rejected") {
      assert(Records.switch(Records.write(switch.copy(to = name))).isEmpty)
      assert(Records.partitions(Records.write(partitions.copy(to = name))).isEmpty)
    }
  }

  test("DONE lists the files whose modification times have changed") {
    assert(Records.placed(Records.writeDone("life", Seq(file))) == Seq(file))
    assert(Records.isDone(Records.writeDone("life", Nil), "life"))
    assert(!Records.isDone(Records.writeDone("life", Nil), "another"))
  }

  for (text <- Seq("", "{}", "null", "[]", "7", "{\"record\":\"outcome\",\"outcome\":\"MAYBE\"}")) {
    test(s"[$text] is not a record") {
      assert(records.forall { case (_, _, _, read) => read(text.getBytes(UTF_8)).isEmpty })
    }
  }
}
