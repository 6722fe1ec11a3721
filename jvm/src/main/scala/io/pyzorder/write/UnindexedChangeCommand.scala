package io.pyzorder.write

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{DataWritingCommand, LeafRunnableCommand}
import org.apache.spark.sql.execution.command.TruncateTableCommand
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.pyzorder.shim
import org.slf4j.LoggerFactory

import io.pyzorder.catalog.TargetLookup
import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.store.{IndexPublisher, IndexStore, SnapshotRef}
import io.pyzorder.publish.journal.Journal
import io.pyzorder.storage.TableFolder

/**
 * Runs a Spark command that changes a table's files without adding entries to the table's index.
 *
 * @param movesPartition whether the command gives a partition another folder, or separates the
 *                       partitions from the journal in the table's folder. Such a command is
 *                       rejected while files of an unfinished run may be staged or retired, because
 *                       the run's record names the partition's files by their current paths
 */
final case class UnindexedChangeCommand(
    change: LeafRunnableCommand,
    table: TableIdentifier,
    movesPartition: Boolean = false)
    extends LeafRunnableCommand {

  override def output: Seq[Attribute] = change.output

  override def simpleString(maxFields: Int): String = change.simpleString(maxFields)

  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val catalog = session.sessionState.catalog
    val changed =
      if (catalog.tableExists(table)) Some(catalog.getTableMetadata(table)) else None
    if (movesPartition) {
      changed.filter(_.partitionColumnNames.nonEmpty)
        .filter(TargetLookup.plainProvider(_).isDefined)
        .foreach(UnindexedChangeCommand.checkFinished(session, _))
    }
    val truncated = changed.filter(_ => change.isInstanceOf[TruncateTableCommand])
    UnindexedChangeCommand.keeping(session, truncated) {
      UnindexedChangeCommand.uncovering(session, changed)(change.run(session))
    }
  }
}

/** Runs a Spark command that writes to a table without adding entries to the table's index. */
final case class UnindexedWriteCommand(write: DataWritingCommand, table: CatalogTable)
    extends DataWritingCommand {

  override def query: LogicalPlan = write.query

  override def outputColumnNames: Seq[String] = write.outputColumnNames

  override lazy val metrics: Map[String, SQLMetric] = write.metrics

  override def simpleString(maxFields: Int): String = write.simpleString(maxFields)

  override def run(session: shim.SparkSession, child: SparkPlan): Seq[Row] =
    UnindexedChangeCommand.uncovering(session, Some(table))(write.run(session, child))

  override protected def withNewChildInternal(newChild: LogicalPlan): LogicalPlan =
    copy(write = write.withNewChildren(Seq(newChild)).asInstanceOf[DataWritingCommand])
}

object UnindexedChangeCommand {

  private val log = LoggerFactory.getLogger(classOf[UnindexedChangeCommand])

  private def checkFinished(session: shim.SparkSession, table: CatalogTable): Unit =
    folderOf(session, table).foreach { folder =>
      val conf = session.sessionState.newHadoopConf()
      if (Journal.read(conf, folder).overlay.isDefined) {
        throw ZOrderErrors.partitionsInUse(table.identifier.copy(catalog = None).quotedString)
      }
    }

  private def folderOf(session: shim.SparkSession, table: CatalogTable): Option[TableFolder] =
    table.storage.locationUri.map { location =>
      val path = new Path(location)
      val fs = path.getFileSystem(session.sessionState.newHadoopConf())
      new TableFolder(fs.makeQualified(path))
    }

  /** Runs a command that may delete the table's folder, then recreates its index, if it had one. */
  private def keeping(
      session: shim.SparkSession,
      table: Option[CatalogTable])(change: => Seq[Row]): Seq[Row] = {
    val conf = session.sessionState.newHadoopConf()
    val before =
      try table.flatMap(folderOf(session, _)).flatMap(IndexStore.latest(conf, _))
      catch { case NonFatal(_) => None } // an unreadable index must not make the command fail
    try change
    finally
      for (truncated <- table; index <- before) {
        try keep(session, index, truncated.properties)
        catch {
          case NonFatal(failure) =>
            log.warn(s"The index of ${index.folder.root} was deleted: ${failure.getMessage}")
        }
      }
  }

  /**
   * Recreates the index, without entries, if a command has deleted it together with the table's
   * files. Otherwise, sessions would no longer notice what other sessions write.
   */
  private[write] def keep(
      session: shim.SparkSession,
      before: SnapshotRef,
      properties: Map[String, String]): Unit =
    if (IndexStore.latest(session.sessionState.newHadoopConf(), before.folder).isEmpty) {
      IndexPublisher.publish(
        session, before.folder, _ => before.columns, identity, properties, voids = true,
        sketched = _ => before.sketched)
    }

  /**
   * Runs a command that changes a table's files, then records that the index no longer covers the
   * table. Queries therefore list the files again, even if index.maxStaleness would allow them to
   * use an earlier listing.
   */
  private[write] def uncovering(
      session: shim.SparkSession,
      table: Option[CatalogTable])(change: => Seq[Row]): Seq[Row] =
    try change
    finally {
      // A command that fails may still have changed some files.
      for (changed <- table; location <- changed.storage.locationUri) {
        try {
          folderOf(session, changed).foreach(IndexPublisher.uncover(session, _, changed.properties))
        } catch {
          case NonFatal(failure) =>
            log.warn(
              s"The files in $location were changed, but queries with " +
                "spark.sql.zorder.index.maxStaleness may not see the change until REFRESH " +
                s"SKIPPING INDEX has run: ${failure.getMessage}")
        }
      }
    }
}
