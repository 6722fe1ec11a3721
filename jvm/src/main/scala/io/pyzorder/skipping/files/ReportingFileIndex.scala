package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.FileIndex

/** A file index that can tell what it does to a scan's files, without being asked to list them. */
trait ReportingFileIndex extends FileIndex {

  /** What becomes of the files of a scan with these filters. */
  def outcome(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): SkippingOutcome
}
