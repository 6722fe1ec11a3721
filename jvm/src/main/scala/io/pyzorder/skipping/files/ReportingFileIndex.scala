package io.pyzorder.skipping.files

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.datasources.FileIndex

/** A file index that can report its effect on a scan's files without a call to `listFiles`. */
trait ReportingFileIndex extends FileIndex {

  /** The outcome for the files of a scan with these filters. */
  def outcome(partitionFilters: Seq[Expression], dataFilters: Seq[Expression]): SkippingOutcome
}
