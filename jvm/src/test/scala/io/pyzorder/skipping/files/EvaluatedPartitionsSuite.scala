package io.pyzorder.skipping.files

import scala.util.Random

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite

import io.pyzorder.skipping.predicate.IndexFilter

class EvaluatedPartitionsSuite extends AnyFunSuite {

  private def question(snapshot: String, numFiles: Int = 20000): EvaluatedPartitions.Question =
    EvaluatedPartitions.Question(
      new Path("file:/t"), snapshot, numFiles, IndexFilter.Always,
      ColumnReading(new StructType(), caseSensitive = true, "", ""), Map.empty)

  private val results =
    Seq(PruningResult.Selected, PruningResult.Skipped, PruningResult.Unindexed, null)

  private def resultOf(each: Seq[PruningResult]): PartitionResult =
    PartitionResult.of(each.toArray, i => 10L + i)

  /** The result for each file, from the parts of a PartitionResult. */
  private def each(result: PartitionResult): Map[Int, PruningResult] =
    result.kept.zip(result.results).toMap ++ result.skipped.map(_ -> PruningResult.Skipped)

  private def expected(results: Seq[PruningResult]): Map[Int, PruningResult] =
    results.indices.map(i => i -> Option(results(i)).getOrElse(PruningResult.Unindexed)).toMap

  test("a large partition is evaluated once for each question and list of files") {
    val (evaluated, files, copy) =
      (new EvaluatedPartitions, Array(1, 2), Array(1, 2))
    var evaluations = 0
    def ask(snapshot: String, files: Array[Int]): PartitionResult =
      evaluated.once(Seq(question(snapshot) -> files)) {
        evaluations += 1
        resultOf(Seq(PruningResult.Selected, PruningResult.Skipped))
      }
    assert(ask("a", files) eq ask("a", files))
    assert(evaluations == 1)
    assert(ask("b", files) ne ask("a", files))
    assert(ask("a", copy) ne ask("a", files))
    assert(evaluations == 3)
  }

  test("an evaluation that fails is repeated, and a small index is evaluated each time") {
    val evaluated = new EvaluatedPartitions
    val large = Seq(question("a") -> Array(1))
    assertThrows[IllegalStateException](
      evaluated.once(large)(throw new IllegalStateException("the test fails")))
    assert(evaluated.once(large)(resultOf(Seq(null))).kept.toSeq == Seq(0))
    val small = Seq(question("a", 100) -> Array(1))
    def ask(): PartitionResult = evaluated.once(small)(resultOf(Seq(null)))
    assert(ask() ne ask())
  }

  test("a result enumerates the files as they were evaluated") {
    val random = new Random(13)
    for (_ <- 1 to 200) {
      val own = Seq.fill(random.nextInt(40))(results(random.nextInt(results.length)))
      val result = resultOf(own)
      assert(each(result) == expected(own))
      val skipped = own.indices.filter(own(_) == PruningResult.Skipped)
      assert(result.numSkipped == skipped.size)
      assert(result.skippedBytes == skipped.map(10L + _).sum)
      val changed = own.indices.filter(_ => random.nextBoolean()).toSet
      val now = own.indices.map(i => if (changed(i)) null else own(i))
      assert(each(result.unindexed(changed, i => 10L + i)) == expected(now))
      val other = own.map(r => if (random.nextBoolean()) PruningResult.Selected else r)
      val unlike = skipped.count(other(_) != PruningResult.Skipped)
      assert(result.numSkippedUnlike(resultOf(other)) == unlike)
    }
  }
}
