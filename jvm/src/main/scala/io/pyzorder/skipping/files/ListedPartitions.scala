package io.pyzorder.skipping.files

import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}

/**
 * The partitions that a listing returns for some filters. They are materialized, because Spark 3.5
 * may list lazily, which would delay counting.
 *
 * @param listing returns the same FileStatus objects until it is refreshed
 * @param isFresh whether the store has just been listed
 */
final case class ListedPartitions(
    listing: FileIndex,
    partitions: IndexedSeq[PartitionDirectory],
    isFresh: Boolean)
