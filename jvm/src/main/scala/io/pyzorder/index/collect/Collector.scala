package io.pyzorder.index.collect

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.{shim, Requests}
import org.apache.spark.util.SerializableConfiguration
import org.slf4j.LoggerFactory

import io.pyzorder.common.{JobDescription, TaskFunction}
import io.pyzorder.index.model.{Calendars, ColumnStatistics, DataFiles, ExpressionColumn}
import io.pyzorder.index.model.{FileEntry, FileSketches, IndexedColumn, IndexedColumns}
import io.pyzorder.index.model.ReadSettings
import io.pyzorder.index.sketch.NewSketches
import io.pyzorder.storage.FileRef

/**
 * Collects the statistics of data files. Statistics in a file's footer are used if they are
 * provably correct. Otherwise, the affected columns of the file are scanned. Columns that get
 * sketches are always scanned. One Spark job scans all files.
 */
object Collector {

  private val log = LoggerFactory.getLogger(getClass)

  /**
   * Returns the index entries for `data.files`. A file without a readable footer, such as a file
   * that no longer exists, does not get an entry, so it remains unindexed and is always read. The
   * same applies to a file whose number of rows changes before it is scanned. If a file disappears
   * before it is scanned, the call fails.
   *
   * The entries are valid for the sizes and modification times in `data.files`. The files must
   * therefore be listed before this call. If a file is modified after it was listed, its entry no
   * longer matches it.
   *
   * @param columns columns of `data.dataSchema`, spelled as in that schema, and expressions over
   *                these columns. An expression gets no statistics if this session would not
   *                evaluate it as the index describes
   * @param wanted  the columns for which sketches are collected
   */
  def collect(
      session: shim.SparkSession,
      data: DataFiles,
      columns: Seq[IndexedColumn],
      wanted: SketchedColumns = SketchedColumns.None): Seq[FileEntry] = {
    val settings = ReadSettings.of(session, data.options, data.dataSchema)
    val isFound = findsByName(session, data)
    val plain = if (isFound) columns.filter(fromFiles(data, _)) else Nil
    val expressions = if (isFound) ResolvedExpression.usable(session, data, columns) else Nil
    val collected = plain ++ expressions.map(_.column)
    val footers = readFooters(session, data, plain, expressions)
    val open = footers.map { case (i, footer) =>
      i -> collected.zip(footer.answers).collect {
        case (c, _: FooterAnswer.Scan) => c
        case (c, known) if mayHaveSketch(known) && wanted.fits(c, data.files(i).size) => c
      }
    }
    val scanned = ScannedStatistics.of(session, data,
      open.filter { case (i, _) =>
        footers(i).numRecords > 0
      }, wanted.inFiles(data.files.length), expressions)
    data.files.indices.flatMap { i =>
      footers.get(i).flatMap { footer =>
        val rows = scanned.get(i).map(_.numRecords).getOrElse(
          if (open(i).isEmpty) footer.numRecords else 0L)
        if (rows != footer.numRecords) {
          log.warn(
            s"${data.files(i).path} changed while it was being indexed, so it remains unindexed.")
          None
        } else {
          val found = scanned.get(i).map(_.statistics).getOrElse(
            Map.empty[String, ColumnStatistics])
          val sketches = scanned.get(i).fold[FileSketches](FileSketches.Missing)(file =>
            NewSketches.of(file.sketches, wanted.budget))
          Some(entry(session, data, data.files(i), settings, collected, footer, found)
              .copy(sketches = sketches))
        }
      }
    }
  }

  /**
   * Whether the file may have a sketch of the column. The file's footer must show that all scans
   * read the same values.
   */
  private def mayHaveSketch(answer: FooterAnswer): Boolean = answer match {
    case FooterAnswer.Known(known) => known.bounds.isDefined && !known.settingsDependent
    case FooterAnswer.Scan(dependent) => !dependent
  }

  private def entry(
      session: shim.SparkSession,
      data: DataFiles,
      file: FileRef,
      settings: ReadSettings,
      columns: Seq[IndexedColumn],
      footer: FileFooter,
      scanned: Map[String, ColumnStatistics]): FileEntry = {
    val statistics = columns.zip(footer.answers).map {
      case (column, FooterAnswer.Known(known)) => column.name -> known
      case (column, FooterAnswer.Scan(dependent)) =>
        column.name -> scanned.get(column.name)
          .map(readable(session, data, _, column, dependent))
          .getOrElse(ColumnStatistics.unknown)
    }
    FileEntry(
      path = file.path,
      size = file.size,
      modificationTime = file.modificationTime,
      numRecords = footer.numRecords,
      clusteredBy = Nil,
      readSettings = settings.fingerprint,
      statistics = statistics.toMap)
  }

  /**
   * The part of a scan's statistics that is valid for all scans. Under the rebase mode EXCEPTION,
   * the scan for statistics reads dates and timestamps as stored. However, a query would fail or,
   * if the file records its calendar, read different values. Only values for which
   * `Calendars.isModern` is true are the same for all scans. The statistics of an expression whose
   * values may depend on the mode are discarded, because they do not show which dates and
   * timestamps the expression read.
   */
  private def readable(
      session: shim.SparkSession,
      data: DataFiles,
      known: ColumnStatistics,
      column: IndexedColumn,
      dependent: Boolean): ColumnStatistics = {
    val dataType = column.dataType
    val fails = Seq(
      ReadSettings.datetimeRebase(session, data.options),
      ReadSettings.int96Rebase(session, data.options)).contains("EXCEPTION")
    val isExpression = ExpressionColumn.matches(column)
    val certain = if (isExpression) !dependent || !fails
    else
      !Calendars.isTemporal(dataType) || known.empty || !dependent || !fails ||
      Calendars.isModern(known, dataType)
    if (known == ColumnStatistics.failed || isExpression && !certain) ColumnStatistics.failed
    else if (certain) known.copy(settingsDependent = dependent)
    else known.copy(bounds = None, exact = false, settingsDependent = true)
  }

  /**
   * Whether columns are found by name. If they are not, the column that a scan finds depends on
   * information that the index does not record.
   */
  private def findsByName(session: shim.SparkSession, data: DataFiles): Boolean =
    !ReadSettings.matchesFieldIds(session, data.dataSchema) &&
      !ReadSettings.matchesPositions(session, data.options)

  /**
   * Whether the column is read from the files. This is false for expressions, for columns that are
   * no longer in the table, and for partition columns, whose values Spark takes from folder names
   * even if the files contain the columns.
   */
  private def fromFiles(data: DataFiles, column: IndexedColumn): Boolean =
    data.isFromFiles(column.path.head) && !ExpressionColumn.matches(column) &&
      IndexedColumns.fieldsOf(data.dataSchema, column.path, _ == _).isDefined

  /** Reads the footers. Each result has one answer per column, then one per expression. */
  private def readFooters(
      session: shim.SparkSession,
      data: DataFiles,
      columns: Seq[IndexedColumn],
      expressions: Seq[ResolvedExpression]): Map[Int, FileFooter] = {
    val leaves = expressions.flatMap(_.leaves).distinct
    val footers = readFooters(session, data, columns ++ leaves)
    if (expressions.isEmpty) footers
    else footers.map { case (i, footer) =>
      val (answers, ofLeaves) = footer.answers.splitAt(columns.length)
      val known = leaves.zip(ofLeaves).toMap
      i -> footer.copy(answers = answers ++ expressions.map(_.answer(known)))
    }
  }

  private def readFooters(
      session: shim.SparkSession,
      data: DataFiles,
      columns: Seq[IndexedColumn]): Map[Int, FileFooter] = {
    val question = FooterQuestion(
      columns.map(FooterColumn.of(data.dataSchema, _)).toArray,
      session.sessionState.conf.caseSensitiveAnalysis)
    val context = session.sparkContext
    val conf = context.broadcast(
      new SerializableConfiguration(session.sessionState.newHadoopConfWithOptions(data.options)))
    val files = data.files.zipWithIndex.map { case (file, i) =>
      ListedFile(i, data.locate(file).toString, file.size, file.modificationTime)
    }
    val orc = data.format == "orc"
    if (files.isEmpty) {
      Map.empty
    } else {
      val slices = math.min(files.length, math.max(1, context.defaultParallelism * 4))
      val footers = context.parallelize(files, slices)
        .mapPartitions(TaskFunction { (files: Iterator[ListedFile]) =>
          Iterator(
            FileFooters.encode(Collector.footers(files.toSeq, orc, conf.value.value, question)))
        })
      JobDescription.step(context, "read file statistics")(footers.collect())
        .flatMap(FileFooters.decode).toMap
    }
  }

  /** Reads the footers that can be read, several at a time if the store is remote. */
  private def footers(
      files: Seq[ListedFile],
      orc: Boolean,
      conf: Configuration,
      question: FooterQuestion): Seq[(Int, FileFooter)] =
    files.headOption.toSeq.flatMap { first =>
      val parquet = new ParquetFooters(conf)
      Requests.inParallel(new Path(first.path).getFileSystem(conf), files) { file =>
        footer(file, orc, conf, parquet, question).map(file.number -> _)
      }.flatten
    }

  /** Reads one footer. Returns None if it cannot be read. */
  private def footer(
      file: ListedFile,
      orc: Boolean,
      conf: Configuration,
      parquet: ParquetFooters,
      question: FooterQuestion): Option[FileFooter] =
    try {
      if (orc) OrcFooterStatistics.read(new Path(file.path), conf, question)
      else Some(FooterStatistics.read(file.status, parquet, question))
    } catch {
      case NonFatal(failure) =>
        log.warn(
          s"${file.path} has no readable footer and remains unindexed: ${failure.getMessage}")
        None
    }

  /** @param number the file's position in DataFiles.files */
  private final case class ListedFile(
      number: Int,
      path: String,
      size: Long,
      modificationTime: Long) {

    /** The file's status as listed, so that reading the file needs no request for it. */
    def status: FileStatus =
      new FileStatus(size, false, 1, 0, modificationTime, new Path(path))
  }
}
