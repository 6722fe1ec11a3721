package io.pyzorder.commands

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.{ClusteringColumns, ResolvedTable, TableFiles}
import io.pyzorder.common.{JobDescription, ZOrderConf, ZOrderErrors, ZOrderException}
import io.pyzorder.index.collect.Collector
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.model.{Calendars, ColumnStatistics, DeniedColumns, FileEntry}
import io.pyzorder.index.model.{IndexedColumn, IndexedColumns, ReadSettings, ZValueColumn}
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.cells.{FileBox, Sample}
import io.pyzorder.layout.select.{IncrementalPlanner, KnownFiles, LayoutEstimate, LayoutSettings}
import io.pyzorder.layout.select.{LayoutVerdict, OpenedShare, PartitionFiles, PartitionListing}
import io.pyzorder.layout.select.{RewriteGroup, RewritePlan}
import io.pyzorder.layout.write.{ClusteringPlan, InputFooters, InputRelation, Rewrite}
import io.pyzorder.layout.write.{RewriteSession, TypeConflicts, WrittenFile}
import io.pyzorder.publish.{Filled, StagedFile, Writer}
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.FileRef

/**
 * One OPTIMIZE: lock the table → list → choose → sample → lay out and write → publish → refresh
 * what Spark has cached.
 */
final class OptimizeRun(
    session: shim.SparkSession,
    table: ResolvedTable,
    where: Option[Expression],
    zOrderBy: Seq[Seq[String]],
    full: Boolean) {

  private val conf = session.sessionState.conf
  private val started = System.currentTimeMillis()
  private val folder = table.folder(session)
  private val names = zOrderBy.map(IndexedColumn.nameOf)
  private val batchSize = ZOrderConf.batchSize.get(conf, table.properties)
  private val settings = new LayoutSettings(
    conf, table.properties, LayoutRecord.last(session.sessionState.newHadoopConf(), folder))
  import settings.curve
  private val denied = DeniedColumns.of(conf, table.properties)
  private val direct = settings.isDirect

  private lazy val targetSize: Long = settings.targetSize(
    PartitionListing.list(table.relation.location, folder, None).map(_.size).sum,
    isClustered = zOrderBy.nonEmpty)

  /**
   * What `execute` would do; takes no lock, writes nothing. Samples the rows, to cluster them.
   * Throws ZORDER_CONFLICT where others take the files away meanwhile.
   */
  def estimate(): OptimizeMetrics =
    try estimated()
    catch {
      case NonFatal(failure) if ZOrderErrors.isMissing(failure, table.root) =>
        throw ZOrderErrors.because(failure,
          ZOrderErrors.conflict(s"a file of ${table.root} was replaced or deleted"))
      case NonFatal(failure) => throw explained(failure)
    }

  /** What `execute` would rewrite and whether that pays, as far as the index knows the files. */
  def outlook(): (RewritePlan, LayoutVerdict) = {
    val files = list()
    val choice = choose(files, knowing(_ => Map.empty))
    (choice, verdictOf(files, choice))
  }

  private def verdictOf(files: Seq[PartitionFiles], choice: RewritePlan): LayoutVerdict = {
    val every = files.flatMap(_.files)
    val number = every.zipWithIndex.toMap
    val indexed = knowing(_ => Map.empty)
    val (before, after) = LayoutEstimate.foreseen(
      indexed.types, indexed.boxes(every),
      choice.groups.map(group => group.files.map(number) -> group.leaves), curve == "linear")
    LayoutVerdict.of(workOf(choice), before, after)
  }

  private def workOf(choice: RewritePlan): LayoutVerdict.Work = {
    val replaced = choice.groups.flatMap(_.files)
    LayoutVerdict.Work(
      replaced.length, replaced.map(_.getLen).sum, choice.groups.map(_.leaves).sum,
      choice.groups.map(_.folder).distinct.length, replaced.exists(isClustered), names,
      targetSize)
  }

  /** Whether an OPTIMIZE has laid a file out, by whatever columns. */
  private def isClustered(file: FileStatus): Boolean = index.exists { entries =>
    val entry = entries.find(folder.relativize(file.getPath))
    entry >= 0 && entries.clusteredBy(entry).nonEmpty
  }

  /** Throws ZORDER_SLOWER_LOOKUPS where lookups would get slower, unless that is wanted. */
  private def checkHarm(files: Seq[PartitionFiles], choice: RewritePlan): Unit = if (!full) {
    val foreseen = verdictOf(files, choice)
    if (foreseen.isHarm) throw ZOrderErrors.slowerLookups(table.name, foreseen.sentence)
  }

  private def estimated(): OptimizeMetrics = {
    if (switches) SwitchingTables.checkFlat(session, table, everyFile(list()))
    val files = list()
    val choice = choose(files)
    if (zOrderBy.isEmpty) {
      val added = choice.groups.map(_.files.map(_.getLen).sum)
      metrics(files, choice, added, Nil, dryRun = true, Some(verdictOf(files, choice)))
    } else {
      val (groups, facts) = withRows(choice.groups)
      val planned =
        if (groups.isEmpty) Nil
        else rewriting(facts) { (session, _) => plan(input(session, groups), groups, facts).files }
      val every = files.flatMap(_.files)
      val replaced = groups.flatMap(_.files).toSet
      val (before, after) =
        (known.boxes(every), known.boxes(every.filterNot(replaced)) ++ planned)
      val estimates = LayoutEstimate.of(known.types, before, after)
      val chosen = choice.copy(groups = groups)
      metrics(files, chosen, planned.map(_.bytes), estimates, dryRun = true,
        Some(sampledVerdict(files, chosen, before, after)))
    }
  }

  /** With better figures than `verdictOf`, which alone says what is harm. */
  private def sampledVerdict(
      files: Seq[PartitionFiles],
      choice: RewritePlan,
      before: Seq[FileBox],
      after: Seq[FileBox]): LayoutVerdict = {
    val foreseen = verdictOf(files, choice)
    if (foreseen.isHarm) foreseen
    else {
      val (now, next) = LayoutEstimate.pieces(known.types, before, after)
      LayoutVerdict.of(workOf(choice).copy(undoes = false), now, next)
    }
  }

  /**
   * Does it; within the table's folder batch by batch, each published by itself. Throws
   * ZORDER_CONCURRENT_OPTIMIZE, ZORDER_CONFLICT, ZORDER_UNDECLARED_COLUMNS,
   * ZORDER_CANNOT_SWITCH_LOCATION, ZORDER_SLOWER_LOOKUPS; what was published before stays.
   */
  def execute(): OptimizeMetrics = {
    val bySwitch = switches
    if (list().isEmpty) metrics(Nil, RewritePlan(Nil, Nil, 1.0), Nil, Nil, dryRun = false)
    else {
      var writer = Writer.begin(session, table.folder(session), "OPTIMIZE")
      var reading = Seq.empty[FileRef]
      try {
        SwitchingTables.carry(session, table)
        Vacuum.expired(session, table, writer)
        val files = list()
        val choice = choose(files)
        checkHarm(files, choice)
        reading = filesOf(choice.groups)
        val (groups, facts) = withRows(choice.groups)
        val chosen = choice.copy(groups = groups)
        if (bySwitch) {
          reading = everyFile(files)
          SwitchingTables.checkFlat(session, table, reading)
          if (chosen.groups.isEmpty) metrics(files, chosen, Nil, Nil, dryRun = false)
          else if (table.partitionSchema.nonEmpty) byPartition(writer, files, chosen, facts)
          else bySwitching(writer, files, chosen, facts, reading)
        } else {
          val written = chosen.batches(batchSize).zipWithIndex.flatMap { case (batch, number) =>
            if (number > 0) writer = Writer.begin(session, table.folder(session), "OPTIMIZE")
            writer.layout = layout
            reading = filesOf(batch)
            writer.checkAlone(batch.map(_.folder).distinct)
            val written = rewrite(writer, batch, facts)
            publish(writer, batch, written)
            written
          }
          metrics(files, chosen, written.map(_.size), Nil, dryRun = false)
        }
      } catch {
        case NonFatal(failure) => throw writer.reason(explained(failure), reading)
      } finally {
        writer.abort()
        table.refresh(session)
      }
    }
  }

  /** A better reason, where files have other types than the table. */
  private def explained(failure: Throwable): Throwable =
    if (!TypeConflicts.mayBe(failure)) failure
    else typeConflict(list().flatMap(_.files).map(_.getPath.toString))
      .map(ZOrderErrors.because(failure, _)).getOrElse(failure)

  private def typeConflict(paths: Seq[String]): Option[ZOrderException] =
    TypeConflicts.of(session, table.provider, paths, table.dataSchema, table.name)

  private def layout: Option[LayoutRecord] = Some(settings.record(zOrderBy))

  private lazy val switches: Boolean = SwitchingTables.asks(session, table)

  /** Into a new folder: what was chosen anew, and copies of the other files. */
  private def bySwitching(
      writer: Writer,
      files: Seq[PartitionFiles],
      choice: RewritePlan,
      facts: Map[String, InputFooters],
      all: Seq[FileRef]): OptimizeMetrics = {
    val kept = all.filterNot(filesOf(choice.groups).toSet)
    var written = Seq.empty[WrittenFile]
    val to = writer.switchLocation(table.identifier.get, all) { to =>
      val filler = Writer.begin(session, to.root, "OPTIMIZE")
      try {
        filler.layout = layout
        filler.checkSpace(all.map(_.size).sum)
        written = rewrite(filler, choice.groups, facts)
        val copies = FileCopies.stage(
          session, filler, SwitchingTables.placesOf(folder, kept), "OPTIMIZE")
        val columns = columnsWith(written)
        val known = knownOf(kept, columns(Nil)) ++ entries(written)
        filler.publish(Nil, staged(written) ++ copies, known, columns,
          rowsOf = all.map(file => folder.resolve(file.path)))
      } finally filler.abort()
    }
    metrics(files, choice, written.map(_.size), Nil, dryRun = false).copy(path = to.root.toString)
  }

  /** Into new folders of the partitions that are touched, of each all files. */
  private def byPartition(
      writer: Writer,
      files: Seq[PartitionFiles],
      choice: RewritePlan,
      facts: Map[String, InputFooters]): OptimizeMetrics = {
    val touched = files.filter(choice.groups.map(_.folder).toSet contains _.folder)
    val read = everyFile(touched)
    val kept = read.filterNot(filesOf(choice.groups).toSet)
    val moves = SwitchingTables.moves(session, table, touched.map(_.folder))
    var written = Seq.empty[WrittenFile]
    writer.layout = layout
    writer.switchPartitions(table.identifier.get, moves, read) { folders =>
      writer.checkSpace(read.map(_.size).sum)
      written = rewrite(
        writer, choice.groups.map(group => group.copy(folder = folders(group.folder))), facts)
      def renamed(file: FileRef) = s"${folders(file.folder)}/${file.name}"
      val names = kept.map(file => file.path -> renamed(file)).toMap
      val copies = FileCopies.stage(
        session, writer, kept.map(file => names(file.path) -> folder.resolve(file.path)),
        "OPTIMIZE")
      val columns = columnsWith(written)
      val known = knownOf(kept, columns(Nil)).map(entry => entry.copy(path = names(entry.path)))
      Filled(staged(written) ++ copies, known ++ entries(written), columns)
    }
    metrics(files, choice, written.map(_.size), Nil, dryRun = false)
  }

  /** What the index says of files that are kept, in these columns. */
  private def knownOf(kept: Seq[FileRef], columns: Seq[IndexedColumn]): Seq[FileEntry] =
    index.toSeq.flatMap { known =>
      val names = columns.filter(known.columns.contains).map(_.name).toSet
      SkippingIndex.valid(known.entries, kept).map(entry =>
        entry.copy(statistics = entry.statistics.filter { case (name, _) => names(name) }))
    }

  private def filesOf(groups: Seq[RewriteGroup]): Seq[FileRef] =
    groups.flatMap(_.files).map(PartitionListing.refOf(folder, _))

  private def everyFile(partitions: Seq[PartitionFiles]): Seq[FileRef] =
    partitions.flatMap(_.files).map(PartitionListing.refOf(folder, _))

  private def list(): Seq[PartitionFiles] = {
    val listed = PartitionListing.list(table.relation.location, folder, where)
    listed.groupBy(_.folder).values.find(_.length > 1).foreach { several =>
      throw ZOrderErrors.sharedPartitions(
        table.name, folder.resolve(several.head.folder).toString)
    }
    listed
  }

  private def choose(files: Seq[PartitionFiles]): RewritePlan = choose(files, known)

  private def choose(files: Seq[PartitionFiles], known: => KnownFiles): RewritePlan =
    if (zOrderBy.isEmpty) RewritePlan.toCompact(files, targetSize)
    else if (full) RewritePlan.everything(files, targetSize)
    else IncrementalPlanner.of(known, settings, targetSize).choose(files)

  private lazy val known: KnownFiles = knowing(collect)

  /** With `collect` for the files that the index does not know. */
  private def knowing(
      collect: Seq[FileRef] => Map[String, Seq[ColumnStatistics]]): KnownFiles =
    new KnownFiles(folder, clusteringColumns, index, collect)

  private lazy val clusteringColumns: Seq[IndexedColumn] = zOrderBy.map { path =>
    val fields = IndexedColumns.fieldsOf(table.fileSchema, path, _ == _)
    IndexedColumn(path, fields.get.last.dataType)
  }

  /** Statistics of files that the index does not know. */
  private def collect(files: Seq[FileRef]): Map[String, Seq[ColumnStatistics]] = {
    val can = clusteringColumns.filter(statisticsColumns.contains)
    Collector.collect(session, TableFiles.toIndex(table, files), can).map { entry =>
      entry.path ->
        clusteringColumns.map(c => entry.statistics.getOrElse(c.name, ColumnStatistics.unknown))
    }.toMap
  }

  private lazy val index: Option[IndexSnapshot] =
    IndexStore.latest(session.sessionState.newHadoopConf(), folder)
      .flatMap(IndexStore.load(session, _))

  /** The groups that hold a row, of no more files than rows, and what their files' footers say. */
  private def withRows(groups: Seq[RewriteGroup])
      : (Seq[RewriteGroup], Map[String, InputFooters]) = {
    val paths = groups.flatMap(_.files).map(_.getPath.toString)
    val facts = InputFooters.read(session, table.provider, table.dataSchema, paths)
    InputFooters.check(facts)
    if (facts.exists(_.lossy)) typeConflict(paths).foreach(conflict => throw conflict)
    SharedFolderDefaults.check(session, table, facts)
    val byPath = facts.map(fact => fact.path -> fact).toMap
    val held = groups.map(group => group -> rowsOf(group, byPath)).collect {
      case (group, rows) if rows > 0 =>
        group.copy(leaves = math.min(group.leaves.toLong, rows).toInt)
    }
    (held, byPath)
  }

  private def rewrite(
      writer: Writer,
      groups: Seq[RewriteGroup],
      facts: Map[String, InputFooters]): Seq[WrittenFile] = {
    writer.checkSpace(groups.flatMap(_.files).map(_.getLen).sum)
    rewriting(facts) { (session, timestamps) =>
      val rewrite = new Rewrite(
        session, writer.folder.root, table.relation.fileFormat, table.provider, table.dataSchema,
        InputFooters.withoutDictionaries(
          InputFooters.withCodec(table.options, facts.values), facts.values, names.toSet),
        timestamps.contains("TIMESTAMP_MILLIS"),
        statisticsColumns ++ curveColumn(timestamps), writer.run)
      if (zOrderBy.isEmpty) rewrite.compact(groups)
      else {
        val rows = input(session, groups)
        rewrite.cluster(groups, rows, plan(rows, groups, facts))
      }
    }
  }

  /** Runs `body` in a session of RewriteSession's, which it is given with the timestamps' type. */
  private def rewriting[T](facts: Map[String, InputFooters])(
      body: (shim.SparkSession, Option[String]) => T): T = {
    val timestamps = InputFooters.timestampType(facts.values)
    val rewriting = RewriteSession.of(session, timestamps)
    RewriteSession.use(rewriting)(body(rewriting, timestamps))
  }

  private def input(session: shim.SparkSession, groups: Seq[RewriteGroup]): InputRelation =
    new InputRelation(
      session, folder.root, table.relation.fileFormat, table.dataSchema, table.options,
      groups.map(_.files))

  private def plan(
      input: InputRelation,
      groups: Seq[RewriteGroup],
      facts: Map[String, InputFooters]): ClusteringPlan =
    JobDescription.during(
      session.sparkContext, s"OPTIMIZE ${table.root}: sample the clustering columns")(
      ClusteringPlan.of(input, groups, zOrderBy, curve, direct, fractions(groups, facts)))

  private def publish(
      writer: Writer,
      groups: Seq[RewriteGroup],
      written: Seq[WrittenFile]): Unit = {
    writer.publish(filesOf(groups), staged(written), entries(written), columnsWith(written))
  }

  private def staged(written: Seq[WrittenFile]): Seq[StagedFile] = written.map { file =>
    StagedFile(new Path(file.stagedPath), file.path, file.size, file.numRecords)
  }

  /** Without modification times. */
  private def entries(written: Seq[WrittenFile]): Seq[FileEntry] = {
    val settings = ReadSettings.of(session, table.options, table.fileSchema).fingerprint
    written.map { file =>
      FileEntry(file.path, file.size, 0L, file.numRecords, names, settings, file.statistics)
    }
  }

  /** From the columns that had statistics in the index to those that have them with these files. */
  private def columnsWith(
      written: Seq[WrittenFile]): Seq[IndexedColumn] => Seq[IndexedColumn] = {
    val columns = statisticsColumns ++ written.headOption.toSeq.flatMap { file =>
      val curve = ZValueColumn(zOrderBy)
      if (file.statistics.contains(curve.name)) Some(curve) else None
    }
    old => old.filterNot(o => denied(o) || columns.exists(_.name == o.name)) ++ columns
  }

  /** The index's columns, or those it starts with, and the clustering columns. */
  private lazy val statisticsColumns: Seq[IndexedColumn] =
    if (ReadSettings.matchesFieldIds(session, table.fileSchema) ||
      ReadSettings.matchesPositions(session, table.options)) {
      Nil
    } else {
      val limit = ZOrderConf.indexMaxColumns.get(conf, table.properties)
      val every = IndexedColumns.default(table.fileSchema, Int.MaxValue).filterNot(denied(_))
      val chosen = index.map(_.columns).filter(_.nonEmpty).getOrElse(every.take(limit))
      every.filter(column => chosen.contains(column) || zOrderBy.contains(column.path))
    }

  /**
   * The z-values of the direct method, where all that they are made of is read under any settings
   * as it was written.
   */
  private def curveColumn(timestamps: Option[String]): Option[IndexedColumn] = {
    val curve = ZValueColumn(zOrderBy)
    val types = statisticsColumns.filter(c => zOrderBy.contains(c.path)).map(_.dataType)
    val asWritten = table.provider == "parquet" && !timestamps.contains("TIMESTAMP_MILLIS") ||
      !types.exists(Calendars.isTemporal)
    if (direct && types.length == zOrderBy.length && asWritten &&
      !table.schema.fieldNames.contains(curve.path.head)) Some(curve)
    else None
  }

  private def fractions(
      groups: Seq[RewriteGroup],
      facts: Map[String, InputFooters]): Array[Double] =
    Sample.fractions(
      groups.map(rowsOf(_, facts)), groups.map(_.leaves), ZOrderConf.sampleSize.get(conf))

  private def rowsOf(group: RewriteGroup, facts: Map[String, InputFooters]): Long =
    group.files.map(file => facts(file.getPath.toString).numRows).sum

  private def metrics(
      files: Seq[PartitionFiles],
      choice: RewritePlan,
      added: Seq[Long],
      estimates: Seq[(OpenedShare, OpenedShare)],
      dryRun: Boolean,
      verdict: Option[LayoutVerdict] = None): OptimizeMetrics =
    OptimizeMetrics(
      path = table.root.toString,
      added = added,
      removed = choice.groups.flatMap(_.files).map(_.getLen),
      clustered = choice.clustered.map(_.getLen),
      fresh = choice.fresh.map(_.getLen),
      partitions = choice.groups.map(_.folder).distinct.length.toLong,
      batches = choice.batches(batchSize).length.toLong,
      considered = files.map(_.files.length.toLong).sum,
      strategy = if (zOrderBy.isEmpty) "compaction" else curve,
      clusteredBy = names,
      tableColumns = table.schema.length.toLong,
      withStatistics = statisticsColumns.length.toLong,
      tasks = choice.groups.map(_.leaves.toLong).sum,
      started = started,
      ended = System.currentTimeMillis(),
      dryRun = dryRun,
      estimates = estimates,
      remark =
        Some((verdict.map(_.sentence) ++ choice.remark).mkString(" ")).filter(_.nonEmpty))
}

object OptimizeRun {

  /** Whether an OPTIMIZE that names nothing pays: for whoever reports on a table. */
  def verdict(session: shim.SparkSession, table: ResolvedTable): LayoutVerdict = {
    val columns = ClusteringColumns.default(session, table)
    new OptimizeRun(session, table, None, columns, full = false).outlook()._2
  }
}
