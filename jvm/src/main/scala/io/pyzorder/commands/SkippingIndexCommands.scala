package io.pyzorder.commands

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileAlreadyExistsException, ParentNotDirectoryException}
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.commands.action.SkippingIndex
import io.pyzorder.common.{StoreFailures, ZOrderErrors, ZOrderException}
import io.pyzorder.index.collect.ResolvedExpression
import io.pyzorder.index.model.{DeniedColumns, ExpressionColumn, IndexedColumn, IndexedColumns}
import io.pyzorder.index.store.IndexPublisher
import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * CREATE SKIPPING INDEX: indexes a table's files without rewriting them.
 *
 * @param columns what to index: the text of each expression (Left) and the path of each column
 *                (Right); if empty, the default columns are indexed
 */
case class CreateSkippingIndexCommand(
    table: ResolvedTable,
    ifNotExists: Boolean,
    columns: Seq[Either[String, Seq[String]]])
    extends LeafRunnableCommand {

  override def run(sparkSession: SparkSession): Seq[Row] = StoreFailures.translate(table.root) {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val exists = SkippingIndex.latest(session, table).exists(!_.isUnfinished)
    if (exists && !ifNotExists) throw ZOrderErrors.indexExists(table.name)
    if (!exists) {
      val chosen = if (columns.isEmpty) SkippingIndex.default(session, table) else named(session)
      makeFolder(session)
      val sketched = if (columns.isEmpty) None else Some(chosen.map(_.name))
      begun(session, chosen)(SkippingIndex.update(session, table, chosen, sketched))
    }
    Nil
  }

  /**
   * Publishes an index without entries before it evaluates `fill`. Writers that finish while the
   * files are being indexed leave a trace there (see ListedTable). If `fill` fails, the index is
   * dropped.
   */
  private def begun(session: shim.SparkSession, columns: Seq[IndexedColumn])(
      fill: => Unit): Unit = {
    val folder = new TableFolder(table.root)
    val empty = IndexPublisher.publish(session, folder, _ => columns, identity, table.properties)
    try fill
    catch {
      case NonFatal(failure) =>
        try {
          if (SkippingIndex.latest(session, table).exists(_.file == empty.file))
            IndexPublisher.drop(session, folder)
        } catch { case NonFatal(second) => failure.addSuppressed(second) }
        throw failure
    }
  }

  private def named(session: shim.SparkSession): Seq[IndexedColumn] = {
    val conf = session.sessionState.conf
    val paths = IndexedColumns.resolve(
      table.fileSchema, columns.collect { case Right(path) => path }, table.name,
      conf.caseSensitiveAnalysis).iterator
    val named = columns.map {
      case Right(_) => paths.next()
      case Left(text) =>
        ResolvedExpression.of(session, table.fileSchema, text, table.name).column
    }
    val forms = named.flatMap(column => ExpressionColumn.unapply(column))
    forms.find(one => forms.count(_.form == one.form) > 1)
      .foreach(one => throw ZOrderErrors.duplicateColumn(one.text))
    forms.drop(ExpressionColumn.MaxColumns).foreach(one => throw ZOrderErrors.tooLong(one.text))
    DeniedColumns.of(conf, table.properties).checkColumns(named)
    named
  }

  /**
   * Creates the table's folder if it does not exist yet. An external table usually has no folder
   * before its first INSERT. Does nothing if the table has been dropped or renamed in the meantime,
   * because an existing folder would prevent a new table from being created at that location.
   */
  private def makeFolder(session: shim.SparkSession): Unit =
    if (table.identifier.exists(session.sessionState.catalog.tableExists)) {
      val fs = table.root.getFileSystem(session.sessionState.newHadoopConf())
      if (!FileSystems.exists(fs, table.root)) {
        val made =
          try fs.mkdirs(table.root)
          catch { // thrown by the local file system if a parent folder is a file
            case failure @ (_: ParentNotDirectoryException | _: FileAlreadyExistsException) =>
              throw notMade(String.valueOf(failure.getMessage))
          }
        if (!made) throw notMade("the store did not create this folder")
      }
    }

  private def notMade(why: String): ZOrderException =
    ZOrderErrors.notWritable(table.root.toString, why)
}

/** REFRESH SKIPPING INDEX: indexes new and changed files and drops the entries of deleted files. */
case class RefreshSkippingIndexCommand(table: ResolvedTable) extends LeafRunnableCommand {
  override def run(sparkSession: SparkSession): Seq[Row] = StoreFailures.translate(table.root) {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val columns = SkippingIndex.columnsToRefresh(session, table)
      .getOrElse(throw ZOrderErrors.indexNotFound(table.name))
    SkippingIndex.update(session, table, columns)
    Nil
  }
}

/** DROP SKIPPING INDEX: deletes a table's index. */
case class DropSkippingIndexCommand(table: ResolvedTable, ifExists: Boolean)
    extends LeafRunnableCommand {
  override def run(sparkSession: SparkSession): Seq[Row] = {
    val session = sparkSession.asInstanceOf[shim.SparkSession]
    val folder = new TableFolder(table.root)
    val fs = folder.index.getFileSystem(session.sessionState.newHadoopConf())
    if (fs.exists(folder.index)) {
      StoreFailures.translate(table.root)(IndexPublisher.drop(session, folder))
    } else if (!ifExists) throw ZOrderErrors.indexNotFound(table.name)
    Nil
  }
}
