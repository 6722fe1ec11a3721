package io.pyzorder.write

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command._
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{StructField, StructType}

import io.pyzorder.catalog.{ClusteringColumns, TargetLookup}
import io.pyzorder.common.ZOrderConf
import io.pyzorder.index.collect.ClusteringValue
import io.pyzorder.index.model.IndexedColumn
import io.pyzorder.index.store.IndexStore
import io.pyzorder.layout.select.LayoutSettings
import io.pyzorder.publish.journal.LayoutRecord
import io.pyzorder.storage.TableFolder

/**
 * Clusters the rows of a write if the table declares clustering columns and the settings allow it.
 * Also ensures that every write to a folder either adds entries for the new files to the folder's
 * index, or records that the index lacks these entries. Other commands that change files (TRUNCATE
 * TABLE, LOAD DATA, an ALTER TABLE that drops or renames a partition or sets a location, and an
 * INSERT through a Hive SerDe) only record that the index no longer covers the table.
 *
 * A write is prepared even if its table has no index yet, because an index may be created while the
 * write runs.
 *
 * Every INSERT into a table in one of Spark's own file formats, whether from SQL or from a
 * DataFrame, runs as one of the commands matched here. CREATE TABLE AS SELECT is also matched,
 * because the insert that it runs does not contain the table's properties.
 */
case class PrepareWrites(session: shim.SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case insert: InsertIntoHadoopFsRelationCommand
        if insert.getClass == classOf[InsertIntoHadoopFsRelationCommand] && insert.query.resolved =>
      prepared(insert)
    case create: CreateDataSourceTableAsSelectCommand
        if create.table.bucketSpec.isEmpty && create.query.resolved &&
          TargetLookup.plainProvider(create.table).isDefined && !isLaidOut(create.query) =>
      val table = create.table
      laidOut(
        create.query, create.outputColumnNames, table.partitionColumnNames, table.properties,
        table.identifier.quotedString, None).map(rows => create.copy(query = rows))
        .getOrElse(create)
    case truncate: TruncateTableCommand => UnindexedChangeCommand(truncate, truncate.tableName)
    case load: LoadDataCommand => UnindexedChangeCommand(load, load.table)
    case drop: AlterTableDropPartitionCommand => UnindexedChangeCommand(drop, drop.tableName)
    case rename: AlterTableRenamePartitionCommand =>
      UnindexedChangeCommand(rename, rename.tableName, movesPartition = true)
    case move: AlterTableSetLocationCommand =>
      UnindexedChangeCommand(move, move.tableName, movesPartition = true)
    case write: DataWritingCommand if write.getClass.getName == HiveInsert =>
      write.productIterator.collectFirst {
        case table: CatalogTable if TargetLookup.plainProvider(table).isDefined => table
      }.map(UnindexedWriteCommand(write, _)).getOrElse(write)
  }

  /**
   * Spark's command for an INSERT through a Hive SerDe. The class does not exist without Spark's
   * Hive module.
   */
  private val HiveInsert = "org.apache.spark.sql.hive.execution.InsertIntoHiveTable"

  private def prepared(insert: InsertIntoHadoopFsRelationCommand): LogicalPlan = {
    val properties = insert.catalogTable.map(_.properties).getOrElse(Map.empty)
    val conf = session.sessionState.newHadoopConf()
    val root = insert.outputPath.getFileSystem(conf).makeQualified(insert.outputPath)
    val rows =
      if (isLaidOut(insert.query) || insert.bucketSpec.isDefined ||
        !IndexedInsertCommand.isPlain(insert.fileFormat)) None
      else laidOut(
        insert.query, insert.outputColumnNames, insert.partitionColumns.map(_.name), properties,
        insert.catalogTable.map(_.identifier.quotedString).getOrElse(s"'$root'"), Some(root))
    new IndexedInsertCommand(
      insert.outputPath, insert.staticPartitions, insert.ifPartitionNotExists,
      insert.partitionColumns, insert.bucketSpec, insert.fileFormat, insert.options,
      rows.getOrElse(insert.query), insert.mode, insert.catalogTable, insert.fileIndex,
      insert.outputColumnNames)
  }

  /** The query with its rows clustered; None if they are not to be clustered. */
  private def laidOut(
      query: LogicalPlan,
      names: Seq[String],
      partitions: Seq[String],
      properties: Map[String, String],
      table: String,
      root: Option[Path]): Option[LogicalPlan] = {
    val conf = session.sessionState.conf
    val isAuto = ClusteringColumns.isAuto(properties, names)
    val declared =
      if (!ZOrderConf.writeCluster.get(conf, properties)) Nil
      else if (isAuto) lastColumns(root)
      else ClusteringColumns.declared(properties, names)
    val named = query.output.zip(names)
    val (inFolders, inFiles) =
      named.partition { case (_, name) => partitions.exists(conf.resolver(_, name)) }
    def schemaOf(columns: Seq[(Attribute, String)]): StructType =
      StructType(columns.map { case (c, name) => StructField(name, c.dataType, c.nullable) })
    val schema = schemaOf(inFiles)
    val columns =
      try ClusteringColumns.resolve(
          session, table, schema, schemaOf(inFolders), declared, indexed(root, declared))
      catch { case NonFatal(_) if isAuto => Nil } // the table has changed since, or a forged text
    if (columns.isEmpty) None
    else {
      def input(name: String): Expression = inFiles.find(_._2 == name).get._1
      val settings = new LayoutSettings(conf, properties, remembered = None)
      val layout = WriteLayout(
        columns,
        settings.curve,
        settings.isDirect,
        ZOrderConf.targetFileSize.get(conf, properties),
        ZOrderConf.sampleSize.get(conf),
        root)
      Some(ClusteredRows(
          columns.map(ClusteringValue.of(session, schema, _, input)), inFolders.map(_._1), layout,
          query))
    }
  }

  /** The columns of the table's last OPTIMIZE. */
  private def lastColumns(root: Option[Path]): Seq[Either[String, Seq[String]]] =
    root.flatMap(folder =>
      LayoutRecord.last(session.sessionState.newHadoopConf(), new TableFolder(folder)))
      .map(_.columns).getOrElse(Nil)

  /** The columns of the table's index; may be empty if no column is an expression. */
  private def indexed(
      root: Option[Path],
      named: Seq[Either[String, Seq[String]]]): Seq[IndexedColumn] =
    root.filter(_ => named.exists(_.isLeft)).toSeq
      .flatMap(folder =>
        IndexStore.latest(session.sessionState.newHadoopConf(), new TableFolder(folder)))
      .flatMap(_.columns)

  private def isLaidOut(query: LogicalPlan): Boolean =
    query.exists(_.isInstanceOf[ClusteredRows])
}
