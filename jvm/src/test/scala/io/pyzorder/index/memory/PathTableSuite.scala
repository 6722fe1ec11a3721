package io.pyzorder.index.memory

import java.nio.charset.StandardCharsets.UTF_8

import org.scalatest.funsuite.AnyFunSuite

class PathTableSuite extends AnyFunSuite {

  private def tableOf(paths: Seq[String]): PathTable = {
    val builder = new PathTable.Builder(paths.length)
    paths.zipWithIndex.foreach { case (path, i) => builder.set(i, path.getBytes(UTF_8)) }
    builder.result()
  }

  for (count <- Seq(0, 1, 2, 3, 63, 64, 65, 5000)) test(s"$count paths are found, and no others") {
    val paths = Seq.tabulate(count)(i => s"day=${i % 7}/part-$i.parquet")
    val table = tableOf(paths)
    assert(table.length == count)
    assert(paths.map(table.find) == paths.indices)
    assert(Seq("", "part-0.parquet", s"day=0/part-$count.parquet").forall(table.find(_) == -1))
  }

  test("two equal paths are rejected") {
    intercept[IllegalStateException](tableOf(Seq("a", "b", "a")))
  }

  test("a path that was not set is not found") {
    val builder = new PathTable.Builder(2)
    builder.set(1, "a".getBytes(UTF_8))
    val table = builder.result()
    assert(table.find("a") == 1)
    assert(table.find("") == -1)
  }
}
