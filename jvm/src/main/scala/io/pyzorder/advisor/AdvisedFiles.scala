package io.pyzorder.advisor

import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ResolvedTable, TableFiles}
import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.collect.Collector
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{ColumnStatistics, IndexedColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.cells.Sample
import io.pyzorder.layout.select.{KnownFiles, LayoutSettings, RewritePlan}
import io.pyzorder.layout.write.{InputFooters, InputRelation, RewriteSession}
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * One partition of a table and its files.
 *
 * @param values  the values of the partition columns
 * @param numRows the total number of rows in the files
 */
final case class AdvisedPartition(values: InternalRow, files: Seq[FileStatus], numRows: Long) {

  /** Total size of the files in bytes. */
  val size: Long = files.iterator.map(_.getLen).sum
}

/** A table's current data files, which an OPTIMIZE would rewrite. */
final class AdvisedFiles(session: shim.SparkSession, table: ResolvedTable) {

  private val folder = new TableFolder(table.root)

  private val listed: Seq[(InternalRow, Seq[FileStatus])] =
    TableFiles.listing(session, table).listFiles(Nil, Nil)
      .map(p => p.values -> p.files.map(_.fileStatus).sortBy(_.getPath).toSeq).toSeq

  /** The footer of each file, keyed by the file's path. */
  private val facts: Map[String, InputFooters] = {
    val found = InputFooters.read(
      session, table.provider, table.dataSchema, listed.flatMap(_._2).map(_.getPath.toString))
    InputFooters.check(found)
    found.map(fact => fact.path -> fact).toMap
  }

  val partitions: Seq[AdvisedPartition] = listed.map { case (values, files) =>
    AdvisedPartition(values, files, files.map(file => facts(file.getPath.toString).numRows).sum)
  }.filter(_.numRows > 0)

  val files: Seq[FileStatus] = partitions.flatMap(_.files)

  /** The folders of a partition, and the size of its files in each. */
  def foldersOf(partition: AdvisedPartition): Map[String, Long] =
    partition.files.groupBy(file => folder.relativize(file.getPath.getParent)).map {
      case (name, files) => name -> files.iterator.map(_.getLen).sum
    }

  /** For each partition, the number of files that OPTIMIZE would write. */
  val leaves: Seq[Int] = {
    val targetSize = new LayoutSettings(
      session.sessionState.conf, table.properties,
      LayoutRecord.last(session.sessionState.newHadoopConf(), folder))
      .targetSize(partitions.map(_.size).sum, isClustered = true)
    partitions.map { partition =>
      math.min(partition.numRows, RewritePlan.filesOf(partition.size, targetSize).toLong).toInt
    }
  }

  private lazy val index: Option[IndexSnapshot] =
    IndexStore.latest(session.sessionState.newHadoopConf(), folder)
      .flatMap(IndexStore.load(session, _))

  /**
   * The clustering columns that the index records for the files. Empty if the files do not all have
   * the same clustering columns.
   */
  def clusteredBy: Seq[String] = {
    val each = files.map { file =>
      val known = index.map(entries => entries -> entries.find(folder.relativize(file.getPath)))
      known.fold(Seq.empty[String]) { case (entries, entry) =>
        if (entry >= 0) entries.clusteredBy(entry) else Nil
      }
    }
    if (each.distinct.length == 1) each.head else Nil
  }

  /**
   * The current files and their statistics for the given columns.
   *
   * @param complete whether to collect statistics for files that are not in the index; if false,
   *                 these files have no statistics
   */
  def present(columns: Seq[IndexedColumn], complete: Boolean): Seq[WhatIfFile] = {
    val collected = (files: Seq[FileRef]) =>
      if (complete) collect(columns, files) else Map.empty[String, Seq[ColumnStatistics]]
    val boxes = new KnownFiles(folder, columns, index, collected).boxes(files)
    val values = partitions.flatMap(partition => partition.files.map(_ => partition.values))
    boxes.zip(values).map { case (box, partition) =>
      WhatIfFile(box.bytes, Some(partition), box.columns)
    }
  }

  /**
   * Samples rows to predict the files that an OPTIMIZE would write. Reads only `columns`.
   *
   * @param limit the approximate maximum number of rows. If this number is too low to simulate
   *              every new file, fewer files are simulated
   */
  def sample(columns: Seq[IndexedColumn], limit: Long): SampledRows = {
    val counts = partitions.map(_.numRows)
    val wanted =
      Sample.fractions(counts, leaves, ZOrderConf.sampleSize.get(session.sessionState.conf))
    val drawn = counts.zip(wanted).map { case (count, share) => count * share }.sum
    val scale = math.min(1.0, limit / math.max(1.0, drawn))
    val sample = RewriteSession.use(rewriting) {
      val input = new InputRelation(
        rewriting, folder.root, table.relation.fileFormat, table.dataSchema, table.options,
        partitions.map(_.files))
      Sample.take(
        input.only(columns), columns.map(input.value), input.number, wanted.map(_ * scale))
    }
    SampledRows.of(columns, sample, partitions, leaves)
  }

  /**
   * See SizeProbe.growth.
   *
   * @param layouts the clustering columns of each layout, given as positions in `rows`
   * @param rows    a sample of the rows in these files
   */
  def growth(layouts: Seq[Seq[Int]], rows: SampledRows): Seq[Double] =
    RewriteSession.use(rewriting) {
      val options = InputFooters.withCodec(table.options, facts.values)
      new SizeProbe(rewriting, table, options, partitions, rows).growth(layouts)
    }

  private lazy val rewriting: shim.SparkSession =
    RewriteSession.of(session, InputFooters.timestampType(facts.values))

  private def collect(
      columns: Seq[IndexedColumn],
      files: Seq[FileRef]): Map[String, Seq[ColumnStatistics]] =
    Collector.collect(session, TableFiles.toIndex(session, table, files), columns).map { entry =>
      entry.path ->
        columns.map(c => entry.statistics.getOrElse(c.name, ColumnStatistics.unknown))
    }.toMap
}
