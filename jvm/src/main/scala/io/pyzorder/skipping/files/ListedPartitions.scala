package io.pyzorder.skipping.files

import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}

/**
 * The partitions that a listing gives for some filters, none lazily: Spark 3.5 may list lazily,
 * which must not put off the counting.
 *
 * @param listing gives the same FileStatus objects each time, until it is refreshed
 * @param isFresh the store has just been asked
 */
final case class ListedPartitions(
    listing: FileIndex,
    partitions: IndexedSeq[PartitionDirectory],
    isFresh: Boolean)
