package io.pyzorder.publish.reading

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.execution.datasources.{CatalogFileIndex, FileIndex, InMemoryFileIndex}
import org.apache.spark.sql.execution.datasources.PartitionSpec
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.index.store.SnapshotRef
import io.pyzorder.publish.journal.Journal
import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * A listing of a relation's files.
 *
 * @param files   the listed files, available without further requests to the store
 * @param isFresh whether the store was listed just now
 */
final case class Listing(files: FileIndex, isFresh: Boolean)

/** The read path of the journal. Readers never write. */
object JournaledListing {

  private final case class Cached(key: (Seq[String], Seq[String], Int), listing: FileIndex)

  /** Keyed by the identity of the wrapped index; entries disappear together with it. */
  private val cache: Cache[FileIndex, Cached] =
    CacheBuilder.newBuilder().weakKeys().maximumSize(1000).build[FileIndex, Cached]()

  /**
   * The folders with a `_zorder` that may be the table of a relation's files. Candidates are the
   * catalog's location, the root paths outside it, and their ancestors up to the first folder whose
   * name does not have the form `name=value`. Since a root path may be a file, the search also
   * starts from its parent folder.
   */
  def foldersOf(
      hadoopConf: Configuration,
      rootPaths: Seq[Path],
      tableLocation: Option[Path]): Seq[TableFolder] = {
    val location = tableLocation.map(qualified(hadoopConf, _))
    val roots = rootPaths.map(qualified(hadoopConf, _))
    val outside = roots.filterNot(root => location.exists(l => below(root, l)))
    val candidates = location.toSeq ++ outside.flatMap(root =>
      upwards(root) ++ Option(root.getParent).toSeq.flatMap(upwards))
    candidates.distinct.map { path =>
      if (location.contains(path)) new TableFolder(path).trusting(Set.empty)
      else new TableFolder(path)
    }.filter { folder =>
      FileSystems.exists(folder.root.getFileSystem(hadoopConf), folder.zorder)
    }
  }

  /**
   * Returns `wrapped` itself if no folder has a journal, else a listing through the journals.
   *
   * The listing of an InMemoryFileIndex is cached until a journal, an index or the files of
   * `wrapped` change. Spark refreshes `wrapped` only in the session that wrote; other sessions
   * notice new files by the change of the index. The listing of a CatalogFileIndex fetches the
   * partitions from the catalog each time, as Spark's own does.
   *
   * @param options          the relation's options
   * @param partitionSchema  the relation's partition columns, whose types stay as planned
   * @param indexes          the folders' current indexes; may be empty after a refresh of `wrapped`
   */
  def current(
      session: shim.SparkSession,
      wrapped: FileIndex,
      options: Map[String, String],
      partitionSchema: StructType,
      folders: Seq[TableFolder],
      indexes: Seq[SnapshotRef]): Listing = {
    lazy val hadoopConf = session.sessionState.newHadoopConf()
    val states = folders.map(folder => Journal.read(hadoopConf, folder))
    if (!states.exists(_.exists)) {
      Listing(wrapped, isFresh = false)
    } else wrapped match {
      case catalog: CatalogFileIndex =>
        val chosen = catalog.filterPartitions(Nil)
        val made = if (catalog.table.partitionColumnNames.nonEmpty) {
          listing(session, chosen, Map.empty, None, Some(chosen.partitionSpec()), folders)
        } else {
          listing(session, chosen, catalog.table.storage.properties, None, None, folders)
        }
        Listing(made, isFresh = true)
      case listed: InMemoryFileIndex =>
        val key = (states.map(_.token), indexes.map(_.file), listed.allFiles().hashCode())
        val known = Option(cache.getIfPresent(wrapped)).filter(_.key == key)
        known.map(cached => Listing(cached.listing, isFresh = false)).getOrElse {
          val spec = givenSpec(listed)
          val fromCatalog = spec.isDefined && !options.keys.exists(_.equalsIgnoreCase("basePath"))
          val fresh = listing(
            session, listed, if (fromCatalog) Map.empty else options, Some(partitionSchema), spec,
            folders)
          // Since planning, others may have emptied the folder and filled it with different
          // partition columns, which do not match the plan.
          val asPlanned = fresh.allFiles().isEmpty ||
            fresh.partitionSchema.fieldNames.sameElements(partitionSchema.fieldNames)
          val made = Cached(key, if (asPlanned) fresh else wrapped)
          cache.put(wrapped, made)
          Listing(made.listing, isFresh = asPlanned)
        }
      case other => Listing(other, isFresh = false)
    }
  }

  /** Makes the next listing of `wrapped` query the store again. */
  def forget(wrapped: FileIndex): Unit = cache.invalidate(wrapped)

  private def listing(
      session: shim.SparkSession,
      listed: InMemoryFileIndex,
      options: Map[String, String],
      schema: Option[StructType],
      spec: Option[PartitionSpec],
      folders: Seq[TableFolder]): JournaledFileIndex = {
    val roots = listed.rootPaths.toSet
    val pinned = listed.allFiles().filter(status => roots(status.getPath))
    new JournaledFileIndex(session, listed.rootPaths, options, schema, spec, folders, pinned)
  }

  /** The partitions if they are the root paths, so were given rather than discovered by listing. */
  private def givenSpec(listed: InMemoryFileIndex): Option[PartitionSpec] = {
    val spec = listed.partitionSpec()
    val isGiven = spec.partitionColumns.nonEmpty &&
      spec.partitions.map(_.path).toSet == listed.rootPaths.toSet
    if (isGiven) Some(spec) else None
  }

  private def upwards(path: Path): List[Path] =
    if (path.getName.contains("=") && path.getParent != null) path :: upwards(path.getParent)
    else List(path)

  private def below(path: Path, folder: Path): Boolean =
    path == folder || path.toString.startsWith(folder.toString.stripSuffix("/") + "/")

  private def qualified(hadoopConf: Configuration, path: Path): Path =
    path.getFileSystem(hadoopConf).makeQualified(path)
}
