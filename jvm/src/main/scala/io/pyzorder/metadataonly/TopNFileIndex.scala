package io.pyzorder.metadataonly

/** Lists the files that can contain one of the rows that `ORDER BY … LIMIT` returns; see TopN. */
final class TopNFileIndex(scan: IndexedScan, topN: TopN) extends PlanBoundFileIndex(scan) {

  override protected type Decision = PlanBoundFileIndex.Needed

  override protected def identity: Any = topN

  override protected def decide(): PlanBoundFileIndex.Needed = {
    val partitions = examined()
    val isOpen = topN.open(partitions.flatMap(_.files))
    new PlanBoundFileIndex.Needed(partitions.map(p => p -> p.files.map(isOpen)))
  }
}
