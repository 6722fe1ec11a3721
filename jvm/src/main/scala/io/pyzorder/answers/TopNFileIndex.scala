package io.pyzorder.answers

/** Lists the files that can hold one of the first rows of an order. */
final class TopNFileIndex(scan: IndexedScan, topN: TopN) extends ExaminingFileIndex(scan) {

  override protected type Decision = ExaminingFileIndex.Needed

  override protected def identity: Any = topN

  override protected def decide(): ExaminingFileIndex.Needed = {
    val partitions = examined()
    val isOpen = topN.open(partitions.flatMap(_.files))
    new ExaminingFileIndex.Needed(partitions.map(p => p -> p.files.map(isOpen)))
  }
}
