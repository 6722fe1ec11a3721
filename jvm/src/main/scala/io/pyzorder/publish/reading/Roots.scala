package io.pyzorder.publish.reading

import scala.util.hashing.MurmurHash3

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, FileIndex, InMemoryFileIndex}
import org.apache.spark.sql.execution.datasources.PartitionSpec
import org.apache.spark.sql.pyzorder.{shim, CatalogAccess}
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.store.SnapshotRef
import io.pyzorder.storage.{FileVersion, TableFolder}

/**
 * The paths at which Spark would list a relation's files, and how Spark would derive partitions
 * from the files' paths.
 *
 * @param options the options of the listing
 * @param schema  the partition columns, as planned
 * @param spec    the partitions, if they are given rather than found by listing
 * @param pinned  root paths that are files
 * @param key     a cache key, which changes whenever the catalog's partitions or the files in
 *                Spark's own listing change
 */
private[reading] final case class Roots(
    paths: Seq[Path],
    options: Map[String, String],
    schema: Option[StructType],
    spec: Option[PartitionSpec],
    pinned: Seq[FileStatus],
    key: Any) {

  /**
   * Whether the partition columns of a new listing match those of the plan. They differ if another
   * writer has since replaced the folder's files with differently partitioned files.
   */
  def fits(files: FileIndex): Boolean =
    spec.isDefined ||
      schema.forall(planned => files.partitionSchema.fieldNames.sameElements(planned.fieldNames)) ||
      files.inputFiles.isEmpty

  /**
   * Whether every change that a session with pyzorder makes to the files at these paths also
   * changes one of the indexes. If so, unchanged indexes show that a listing is current.
   *
   * A write by path changes the indexes of the written folder and of its ancestors up to the first
   * folder whose name does not have the form `name=value` (see IndexedInsertCommand). A write to a
   * table in the catalog changes the index in the table's folder. Files of a partition outside that
   * folder are usually written through the table, so the index is assumed to change with them. A
   * write by path to such a partition, or to a folder below one of the paths, is not noticed.
   *
   * @param folders the folders of tables with a `_zorder`
   * @param indexes the indexes in these folders
   */
  def isWatched(folders: Seq[TableFolder], indexes: Seq[SnapshotRef]): Boolean = {
    val indexed = indexes.map(_.folder.root).toSet
    val table = folders.find(_.isInCatalog).map(_.root).filter(indexed)
    val files = pinned.map(_.getPath).toSet
    !Roots.isRecursive(options) && paths.forall { path =>
      val folder = if (files(path)) path.getParent else path
      TableFolder.upwards(folder).exists(indexed) ||
      table.exists(root => !TableFolder.isAtOrBelow(path, root))
    }
  }
}

private[reading] object Roots {

  /**
   * Whether a listing includes the files in all subfolders, even if a subfolder's name does not
   * have the form `name=value`.
   */
  def isRecursive(options: Map[String, String]): Boolean = options.exists { case (key, value) =>
    key.equalsIgnoreCase("recursiveFileLookup") && value.equalsIgnoreCase("true")
  }

  /**
   * The roots of a relation, or None if pyzorder does not recognize the class of its file index.
   *
   * @param selected the partitions to list if they are in the catalog, and the partition columns
   */
  def of(
      session: shim.SparkSession,
      wrapped: FileIndex,
      options: Map[String, String],
      selected: SelectedPartitions): Option[Roots] = wrapped match {
    case catalog: CatalogFileIndex if catalog.table.partitionColumnNames.nonEmpty =>
      val spec = CatalogAccess.partitions(session, catalog, selected.named)
      Some(Roots(spec.partitions.map(_.path), Map.empty, None, Some(spec), Nil, spec))
    case catalog: CatalogFileIndex =>
      Some(Roots(catalog.rootPaths, catalog.table.storage.properties, None, None, Nil, None))
    case deferred: DeferredFileIndex =>
      Some(Roots(deferred.rootPaths, options, Some(selected.columns), None, Nil, None))
    case listed: InMemoryFileIndex =>
      val spec = givenSpec(listed)
      val fromCatalog = spec.isDefined && !options.keys.exists(_.equalsIgnoreCase("basePath"))
      val roots = listed.rootPaths.toSet
      val files = listed.allFiles()
      Some(Roots(
          listed.rootPaths, if (fromCatalog) Map.empty else options, Some(selected.columns), spec,
          files.filter(status => roots(status.getPath)),
          keyOf(files)))
    case _ => None
  }

  /** A number that is different for almost any two lists of different files. */
  def keyOf(files: Seq[FileStatus]): Int =
    MurmurHash3.unorderedHash(files.iterator.map(FileVersion.of))

  /**
   * The partitions, if their folders are the root paths. In that case, the partitions were passed
   * to the index rather than inferred from a listing.
   */
  private def givenSpec(listed: InMemoryFileIndex): Option[PartitionSpec] = {
    val spec = listed.partitionSpec()
    val isGiven = spec.partitionColumns.nonEmpty &&
      spec.partitions.map(_.path).toSet == listed.rootPaths.toSet
    if (isGiven) Some(spec) else None
  }
}
