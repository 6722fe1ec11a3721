package io.pyzorder.skipping.files

import org.apache.spark.sql.execution.datasources.{FileIndex, PartitionDirectory}

import io.pyzorder.common.Staleness

/**
 * The partitions that a listing returns for some filters. They are materialized, because Spark 3.5
 * may list lazily, which would delay the counting of files.
 *
 * @param listing   the listing, which returns the same FileStatus objects until it is refreshed
 * @param isFresh   whether the store has just been listed
 * @param asOf      when the files were verified; None if just now, or if Spark's own index lists
 *                  them
 * @param staleness how old the listing and the index may be
 */
final case class ListedPartitions(
    listing: FileIndex,
    partitions: IndexedSeq[PartitionDirectory],
    isFresh: Boolean,
    asOf: Option[Long],
    staleness: Staleness)
