package io.pyzorder.skipping.files

import scala.util.Random

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.skipping.predicate.{FileTest, IndexFilter}

class EvaluatedFiltersSuite extends AnyFunSuite {

  private val reading = ColumnReading(new StructType(), caseSensitive = true, "", "")

  private def question(snapshot: String): EvaluatedFilters.Question =
    EvaluatedFilters.Question(
      new Path("file:/t"), snapshot, IndexFilter.Always, reading, Map.empty)

  /** A test that keeps every third file, counts its evaluations, and can fail. */
  private class Thirds extends FileTest {
    var evaluations = 0
    var fails = false
    override def mayMatch(file: Int): Boolean = {
      if (fails) throw new IllegalStateException("the test fails")
      evaluations += 1
      file % 3 == 0
    }
  }

  private def select(test: FileTest, files: Seq[Int]): Seq[Int] = {
    val places = files.indices.toArray
    places.take(test.select(files.toArray, places, places.length)).map(files).toSeq
  }

  test("each entry of a large snapshot is evaluated once, whatever is asked and in which order") {
    val (random, evaluated, thirds, numFiles) =
      (new Random(7), new EvaluatedFilters, new Thirds, 20000)
    def once: FileTest = evaluated.once(question("a"), numFiles)(thirds)
    for (_ <- 1 to 20) {
      val files = random.shuffle((0 until numFiles).toList).take(random.nextInt(numFiles))
      assert(select(once, files) == files.filter(_ % 3 == 0))
    }
    assert(thirds.evaluations <= numFiles)
    val before = thirds.evaluations
    assert(select(evaluated.once(question("b"), numFiles)(thirds), Seq(3, 4)) == Seq(3))
    assert(thirds.evaluations == before + 2) // another snapshot
  }

  test("an evaluation that fails rules out no file") {
    val (evaluated, thirds) = (new EvaluatedFilters, new Thirds)
    def once: FileTest = evaluated.once(question("a"), 20000)(thirds)
    thirds.fails = true
    assertThrows[IllegalStateException](select(once, Seq(1, 2, 3)))
    thirds.fails = false
    assert(select(once, Seq(1, 2, 3)) == Seq(3))
  }

  test("a small snapshot is evaluated each time") {
    val (evaluated, thirds) = (new EvaluatedFilters, new Thirds)
    for (_ <- 1 to 2) select(evaluated.once(question("a"), 100)(thirds), Seq(1, 2, 3))
    assert(thirds.evaluations == 6)
  }
}
