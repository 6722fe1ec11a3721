package io.pyzorder.api

import java.util.{List => JList, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.{DataType, StructType}

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.collect.{Collector, SketchedColumns}
import io.pyzorder.index.model.{DataFiles, IndexSchema, IndexedColumns}
import io.pyzorder.index.store.{IndexPublisher, IndexStore, SnapshotRef, SnapshotWriter}
import io.pyzorder.storage.{FileRef, TableFolder}

/** Lets callers outside the JVM manage the index of a folder of files. */
object IndexApi {

  /**
   * Collects the statistics of all files in a folder and publishes them as the folder's index.
   *
   * @param format  "parquet" or "orc"
   * @param schema  the data columns, as StructType.json
   * @param options read options
   * @param columns the paths of the columns to index, for which sketches are also collected; if
   *                empty, all columns that can have statistics are indexed, without sketches
   * @return the version of the new snapshot
   */
  def build(
      session: shim.SparkSession,
      root: String,
      format: String,
      schema: String,
      options: JMap[String, String],
      columns: JList[JList[String]]): Long = {
    val folder = folderOf(session, root)
    val dataSchema = DataType.fromJson(schema).asInstanceOf[StructType]
    val listing =
      new InMemoryFileIndex(session, Seq(folder.root), options.asScala.toMap, Some(dataSchema))
    val files = listing.allFiles().map(status =>
      FileRef(folder.relativize(status.getPath), status.getLen, status.getModificationTime))
    val data = DataFiles(
      folder.root, format, dataSchema, listing.partitionSchema, options.asScala.toMap,
      files.toIndexedSeq)
    val indexed =
      if (columns.isEmpty) IndexedColumns.default(dataSchema, Int.MaxValue)
      else IndexedColumns.resolve(
        dataSchema,
        columns.asScala.map(_.asScala.toList).toList,
        root,
        session.sessionState.conf.caseSensitiveAnalysis)
    val sketched = if (columns.isEmpty) None else Some(indexed.map(_.name))
    val entries = Collector.collect(
      session, data, indexed,
      SketchedColumns.of(sketched.getOrElse(Nil), session.sessionState.conf, Map.empty))
    IndexPublisher.publish(
      session, folder, _ => indexed, _ => entries, sketched = _ => sketched).version
  }

  /** Removes the index entries of the files at `paths`. Returns the version of the new snapshot. */
  def remove(session: shim.SparkSession, root: String, paths: JList[String]): Long = {
    val gone = paths.asScala.toSet
    IndexPublisher.publish(
      session, folderOf(session, root), identity, _.filterNot(e => gone(e.path))).version
  }

  def drop(session: shim.SparkSession, root: String): Unit =
    IndexPublisher.drop(session, folderOf(session, root))

  /** The version of the index that readers use; 0 if there is no index. */
  def version(session: shim.SparkSession, root: String): Long =
    latest(session, root).map(_.version).getOrElse(0L)

  /** The index table, which Spark reads from the snapshot's file. */
  def table(session: shim.SparkSession, root: String): shim.DataFrame =
    shim.dataFrame(session, IndexStore.relation(session, existing(session, root)))

  /**
   * The index entries as query planning loads them into memory. The result is empty if the index is
   * unusable.
   */
  def loaded(session: shim.SparkSession, root: String): shim.DataFrame = {
    val ref = existing(session, root)
    val schema = IndexSchema.of(ref.columns)
    val attributes =
      schema.map(f => AttributeReference(f.name, f.dataType, f.nullable, f.metadata)()).toList
    val entries = IndexStore.loadAll(session, ref)(_.entries).getOrElse(Nil)
    val rows = entries.map(SnapshotWriter.rowOf(_, ref.columns, schema))
    shim.dataFrame(session, LocalRelation(attributes, rows))
  }

  private def existing(session: shim.SparkSession, root: String): SnapshotRef =
    latest(session, root).getOrElse(throw ZOrderErrors.indexNotFound(root))

  private def latest(session: shim.SparkSession, root: String): Option[SnapshotRef] =
    IndexStore.latest(session.sessionState.newHadoopConf(), folderOf(session, root))

  private def folderOf(session: shim.SparkSession, root: String): TableFolder = {
    val path = new Path(root)
    new TableFolder(path.getFileSystem(session.sessionState.newHadoopConf()).makeQualified(path))
  }
}
