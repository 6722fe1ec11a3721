package io.pyzorder.commands.optimize

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.TableFiles
import io.pyzorder.common.{JobDescription, ZOrderConf}
import io.pyzorder.index.collect.ExpressionStatistics
import io.pyzorder.index.model.{FileEntry, ReadSettings, ZValueColumn}
import io.pyzorder.index.sketch.NewSketches
import io.pyzorder.layout.cells.{FileBox, Sample}
import io.pyzorder.layout.select.RewriteGroup
import io.pyzorder.layout.write.{ClusteringPlan, InputFooters, InputRelation, Rewrite}
import io.pyzorder.layout.write.{RewriteSession, WrittenFile}
import io.pyzorder.publish.{Filled, StagedFile, Writer}
import io.pyzorder.storage.FileRef

/**
 * The files to rewrite, and their footers.
 *
 * @param groups  the groups to rewrite. Each group has at least one row and at least as many rows
 *                as files to write
 * @param footers the footers, keyed by file path
 */
private[optimize] final case class RewriteInput(
    groups: Seq[RewriteGroup],
    footers: Map[String, InputFooters]) {

  /** The number of rows in a group. */
  def rowsOf(group: RewriteGroup): Long =
    group.files.map(file => footers(file.getPath.toString).numRows).sum
}

/**
 * Reads the rows of the files that an OPTIMIZE rewrites, and writes them to new files in a writer's
 * staging folder.
 */
private[optimize] final class OptimizeExecutor(context: OptimizeContext) {
  import context._

  /**
   * Reads the footers of the groups' files. If the files cannot be rewritten, throws
   * ZORDER_INCOMPATIBLE_TYPES, ZORDER_OTHER_DEFAULT or an error from InputFooters.
   */
  def inspect(groups: Seq[RewriteGroup]): RewriteInput = {
    val paths = groups.flatMap(_.files).map(_.getPath.toString)
    val footers = InputFooters.read(session, table.provider, table.dataSchema, paths)
    InputFooters.check(footers)
    if (footers.exists(_.lossy)) typeConflict(paths).foreach(conflict => throw conflict)
    SharedFolderDefaults.check(session, table, footers)
    val every = RewriteInput(groups, footers.map(footer => footer.path -> footer).toMap)
    every.copy(groups = groups.map(group => group -> every.rowsOf(group)).collect {
      case (group, rows) if rows > 0 =>
        group.copy(leaves = math.min(group.leaves.toLong, rows).toInt)
    })
  }

  /** Predicts the files that `write` would create, based on a sample of the rows. */
  def foresee(input: RewriteInput): Seq[FileBox] =
    if (input.groups.isEmpty) Nil
    else rewriting(input) { (session, _) => planOf(relation(session, input), input).files }

  /** Writes the new files. Throws ZORDER_NO_SPACE if there is too little free space. */
  def write(writer: Writer, input: RewriteInput): Seq[WrittenFile] = {
    writer.checkSpace(input.groups.flatMap(_.files).map(_.getLen).sum)
    val footers = input.footers.values
    rewriting(input) { (session, timestamps) =>
      val rewrite = new Rewrite(
        session, writer.folder.root, table.relation.fileFormat, table.provider, table.dataSchema,
        InputFooters.withoutDictionaries(
          InputFooters.withCodec(table.options, footers), footers, names.toSet),
        timestamps.contains("TIMESTAMP_MILLIS"),
        statisticsColumns ++ curveColumn(timestamps), sketched, writer.run)
      if (zOrderBy.isEmpty) rewrite.compact(input.groups)
      else {
        val rows = relation(session, input)
        rewrite.cluster(input.groups, rows, planOf(rows, input))
      }
    }
  }

  /** Describes the written files in the form that a writer needs to publish them. */
  def filled(written: Seq[WrittenFile]): Filled = {
    val settings = ReadSettings.of(session, table.options, table.fileSchema).fingerprint
    val curve = ZValueColumn(zOrderBy.map(_.path)).name
    val entries = written.map { file =>
      FileEntry(
        file.path, file.size, 0L, file.numRecords, names, settings, file.statistics,
        NewSketches.of(file.sketches, sketched.budget))
    }
    val staged = written.map(file =>
      FileRef(folder.relativize(new Path(file.stagedPath)), file.size, 0L))
    Filled(
      written.map { file =>
        StagedFile(new Path(file.stagedPath), file.path, file.size, file.numRecords)
      },
      ExpressionStatistics.added(
        session, TableFiles.toIndex(session, table, Nil).copy(files = staged.toIndexedSeq), entries,
        expressionColumns, sketched),
      columnsWith(hasCurve = written.headOption.exists(_.statistics.contains(curve))))
  }

  /** Runs `body` with a session from RewriteSession.of and the timestamp type of the new files. */
  private def rewriting[T](input: RewriteInput)(
      body: (shim.SparkSession, Option[String]) => T): T = {
    val timestamps = InputFooters.timestampType(input.footers.values)
    val rewriting = RewriteSession.of(session, timestamps)
    RewriteSession.use(rewriting)(body(rewriting, timestamps))
  }

  private def relation(session: shim.SparkSession, input: RewriteInput): InputRelation =
    new InputRelation(
      session, folder.root, table.relation.fileFormat, table.dataSchema, table.options,
      input.groups.map(_.files))

  private def planOf(rows: InputRelation, input: RewriteInput): ClusteringPlan =
    JobDescription.during(
      session.sparkContext, s"OPTIMIZE ${table.root}: sample the clustering columns")(
      ClusteringPlan.of(
        rows, input.groups, zOrderBy, settings.curve, settings.isDirect, fractions(input), queries))

  private def fractions(input: RewriteInput): Array[Double] =
    Sample.fractions(
      input.groups.map(input.rowsOf), input.groups.map(_.leaves),
      ZOrderConf.sampleSize.get(session.sessionState.conf))
}
