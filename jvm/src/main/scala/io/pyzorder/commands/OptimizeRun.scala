package io.pyzorder.commands

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.{ZOrderConf, ZOrderErrors}
import io.pyzorder.index._
import io.pyzorder.layout._
import io.pyzorder.publish.{StagedFile, TableFolder, Writer}

/**
 * One OPTIMIZE: lock the table → list its files → choose → sample → lay out and write → publish →
 * refresh what Spark has cached.
 */
final class OptimizeRun(
    session: shim.SparkSession,
    table: ResolvedTable,
    where: Option[Expression],
    zOrderBy: Seq[Seq[String]],
    full: Boolean) {
  import OptimizeRun._

  private val conf = session.sessionState.conf
  private val started = System.currentTimeMillis()
  private val folder = new TableFolder(table.root)
  private val names = zOrderBy.map(IndexedColumn.nameOf)
  private val targetSize = ZOrderConf.targetFileSize.get(conf, table.properties)
  private val curve = ZOrderConf.curve.get(conf, table.properties)
  private val direct =
    ZOrderConf.method.get(conf, table.properties) == "direct" && curve != "linear"
  if (direct && curve == "hilbert") {
    throw ZOrderErrors.invalidSetting(ZOrderConf.curve.key, curve,
      s"It needs ${ZOrderConf.method.key}=boundaries.")
  }

  /** What `execute` would do, as far as the files' sizes tell; takes no lock, writes nothing. */
  def estimate(): OptimizeMetrics = {
    val files = list()
    val groups = choose(files)
    val added = groups.flatMap { group =>
      val size = group.files.map(_.getLen).sum
      Seq.fill(group.leaves)(size / group.leaves)
    }
    metrics(files, groups, added, dryRun = true)
  }

  /** Does it. Throws ZORDER_CONCURRENT_OPTIMIZE, ZORDER_CONFLICT, ZORDER_UNDECLARED_COLUMNS. */
  def execute(): OptimizeMetrics =
    if (list().isEmpty) metrics(Nil, Nil, Nil, dryRun = false)
    else {
      val writer = Writer.begin(session, table.root, "OPTIMIZE")
      try {
        val files = list()
        val (groups, facts) = withRows(choose(files))
        val written = if (groups.isEmpty) Nil else rewrite(writer, groups, facts)
        if (groups.nonEmpty) publish(writer, groups, written)
        metrics(files, groups, written.map(_.size), dryRun = false)
      } finally {
        writer.abort()
        refresh()
      }
    }

  private def list(): Seq[PartitionFiles] =
    PartitionListing.list(table.relation.location, folder, where)

  private def choose(files: Seq[PartitionFiles]): Seq[RewriteGroup] =
    if (zOrderBy.isEmpty) Choice.toCompact(files, targetSize)
    else Choice.toCluster(files, targetSize, names, folder, index, full)

  private def index: Option[IndexSnapshot] =
    IndexStore.latest(session.sessionState.newHadoopConf(), folder)
      .flatMap(IndexStore.load(session, _))

  /** The groups that hold a row, of no more files than rows, and what their files' footers say. */
  private def withRows(groups: Seq[RewriteGroup]): (Seq[RewriteGroup], Map[String, FileFacts]) = {
    val paths = groups.flatMap(_.files).map(_.getPath.toString)
    val facts = FileFacts.read(session, table.provider, table.dataSchema, paths)
    FileFacts.check(facts)
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
      facts: Map[String, FileFacts]): Seq[WrittenFile] = {
    writer.checkSpace(groups.flatMap(_.files).map(_.getLen).sum)
    val timestamps = timestampType(facts.values)
    val rewriting = RewriteSession.of(session, timestamps)
    RewriteSession.use(rewriting) {
      val rewrite = new Rewrite(
        rewriting, writer.folder.root, table.relation.fileFormat, table.provider, table.dataSchema,
        withCodec(facts.values), timestamps.contains("TIMESTAMP_MILLIS"), statisticsColumns,
        writer.run)
      if (zOrderBy.isEmpty) rewrite.compact(groups)
      else rewrite.cluster(groups, zOrderBy, curve, direct, fractions(groups, facts))
    }
  }

  private def publish(
      writer: Writer,
      groups: Seq[RewriteGroup],
      written: Seq[WrittenFile]): Unit = {
    val settings = ReadSettings.of(session, table.options).fingerprint
    val retire = groups.flatMap(_.files).map(PartitionListing.refOf(writer.folder, _))
    val staged = written.map { file =>
      StagedFile(new Path(file.stagedPath), file.path, file.size, file.numRecords)
    }
    val entries = written.map { file =>
      FileEntry(file.path, file.size, 0L, file.numRecords, names, settings, file.statistics)
    }
    val columns = statisticsColumns
    writer.publish(retire, staged, entries,
      old =>
        old.filterNot(o => columns.exists(_.name == o.name)) ++ columns)
  }

  /** The index's columns, or those it starts with, and the clustering columns. */
  private lazy val statisticsColumns: Seq[IndexedColumn] =
    if (ReadSettings.matchesFieldIds(session) ||
      ReadSettings.matchesPositions(session, table.options)) {
      Nil
    } else {
      val limit = ZOrderConf.indexMaxColumns.get(conf)
      val every = IndexedColumns.default(table.fileSchema, Int.MaxValue)
      val chosen = index.map(_.columns).filter(_.nonEmpty).getOrElse(every.take(limit))
      every.filter(column => chosen.contains(column) || zOrderBy.contains(column.path))
    }

  /** So much of each group that every file is drawn from often enough. */
  private def fractions(groups: Seq[RewriteGroup], facts: Map[String, FileFacts]): Array[Double] = {
    val rows = groups.map(rowsOf(_, facts))
    val wanted = ZOrderConf.sampleSize.get(conf).toDouble / math.max(1L, rows.sum)
    groups.zip(rows).map { case (group, count) =>
      math.min(1.0, math.max(wanted, group.leaves * RowsPerLeaf.toDouble / math.max(1L, count)))
    }.toArray
  }

  private def rowsOf(group: RewriteGroup, facts: Map[String, FileFacts]): Long =
    group.files.map(file => facts(file.getPath.toString).numRows).sum

  /** The table's options; where none names a codec, the one that most files have. */
  private def withCodec(facts: Iterable[FileFacts]): Map[String, String] = {
    val named = table.options.keys.exists(key => CodecOptions(key.toLowerCase))
    val codecs = facts.flatMap(_.codec).groupBy(identity).map { case (k, v) => k -> v.size }
    if (named || codecs.isEmpty) table.options
    else table.options + ("compression" -> codecs.maxBy(_.swap)._1)
  }

  private def timestampType(facts: Iterable[FileFacts]): Option[String] = {
    val types = facts.flatMap(_.timestamps).toSet
    Seq("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS").find(types)
  }

  /** Makes Spark forget listings and reread cached data of the table. */
  private def refresh(): Unit = {
    table.relation.location.refresh()
    table.identifier.foreach(name =>
      session.catalog.refreshTable(name.copy(catalog = None).quotedString))
    session.catalog.refreshByPath(table.root.toString)
  }

  private def metrics(
      files: Seq[PartitionFiles],
      groups: Seq[RewriteGroup],
      added: Seq[Long],
      dryRun: Boolean): OptimizeMetrics =
    OptimizeMetrics(
      path = table.root.toString,
      added = added,
      removed = groups.flatMap(_.files).map(_.getLen),
      partitions = groups.map(_.folder).distinct.length.toLong,
      considered = files.map(_.files.length.toLong).sum,
      strategy = if (zOrderBy.isEmpty) "compaction" else curve,
      clusteredBy = names,
      tableColumns = table.schema.length.toLong,
      withStatistics = statisticsColumns.length.toLong,
      tasks = groups.map(_.leaves.toLong).sum,
      started = started,
      ended = System.currentTimeMillis(),
      dryRun = dryRun)
}

object OptimizeRun {

  /** Rows to sample for each file that will be written, at least. */
  private val RowsPerLeaf = 500

  private val CodecOptions = Set("compression", "parquet.compression", "orc.compress")
}
