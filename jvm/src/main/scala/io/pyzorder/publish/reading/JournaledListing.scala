package io.pyzorder.publish.reading

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.execution.datasources.{FileIndex, FileStatusCache, InMemoryFileIndex}
import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructType

import io.pyzorder.common.Staleness
import io.pyzorder.index.store.SnapshotRef
import io.pyzorder.publish.journal.{Journal, JournalState}
import io.pyzorder.storage.{FileSystems, TableFolder}
import io.pyzorder.storage.metadata.ListedMetadata

/**
 * A listing of a relation's files.
 *
 * @param files   a file index of the listed files. Unless it is the relation's own file index, it
 *                does not send any further requests to the store
 * @param isFresh whether the store was listed just now
 * @param asOf    a time at which the listed files were known to be the relation's files; None for
 *                the relation's own file index, because Spark does not record when it lists
 */
final case class Listing(files: FileIndex, isFresh: Boolean, asOf: Option[Long])

/**
 * Lists the files of tables, taking their journals into account. Never changes a table or journal.
 */
object JournaledListing {

  private final case class Cached(key: Any, listing: Listing)

  private def keyOf(journals: Seq[JournalState], indexes: Seq[SnapshotRef], at: Roots): Any =
    (journals.map(_.token), indexes.map(index => (index.version, index.file)), at.key)

  /**
   * The last listing for each of at most 1,000 wrapped file indexes. An entry is keyed by the file
   * index's identity, and dropped when the file index is garbage-collected.
   */
  private val cache: Cache[FileIndex, Cached] =
    CacheBuilder.newBuilder().weakKeys().maximumSize(1000).build[FileIndex, Cached]()

  /** The file indexes of tables that have, or have had, a journal or an index; see isShared. */
  private val shared: Cache[FileIndex, java.lang.Boolean] =
    CacheBuilder.newBuilder().weakKeys().build[FileIndex, java.lang.Boolean]()

  /**
   * The metadata of all tables to which the relation's files may belong. Only tables with a
   * `_zorder` folder are included. Candidates are the table's location in the catalog, the root
   * paths outside it, and their ancestors up to the first folder whose name does not have the form
   * `name=value`. If a root path is a file, the search also starts at its parent folder. If a root
   * path is a folder, the search does not start at its parent, because someone who can create a
   * `_zorder` folder beside a table must not be able to determine which files belong to the table.
   */
  def tablesOf(
      hadoopConf: Configuration,
      rootPaths: Seq[Path],
      tableLocation: Option[Path]): Seq[ListedMetadata] = {
    val location = tableLocation.map(qualified(hadoopConf, _))
    val roots = rootPaths.map(qualified(hadoopConf, _))
    val outside = roots.filterNot(root => location.exists(l => TableFolder.isAtOrBelow(root, l)))
    val candidates = (location.toSeq ++ outside).flatMap(TableFolder.upwards) ++
      outside.filter(isFileOfTable(hadoopConf, _)).flatMap(file =>
        TableFolder.upwards(file.getParent))
    candidates.distinct.map { path =>
      val folder = new TableFolder(path)
      ListedMetadata.newest(
        hadoopConf, if (location.contains(path)) folder.trusting(Set.empty) else folder)
    }.filter(_.exists)
  }

  /**
   * Lists the relation's files, taking the journals of its folders into account. Returns `wrapped`
   * itself if the table has neither a journal nor an index.
   *
   * A listing is cached until a journal, an index or the files of `wrapped` change. Spark refreshes
   * `wrapped` only in the session that wrote the files. Other sessions notice new files because the
   * index changes. The partitions of a CatalogFileIndex are fetched from the catalog each time.
   *
   * If `staleness` allows outdated information, files are taken from the indexes that are recent
   * enough, and only the paths that these indexes do not cover are listed. A cached listing is
   * reused if it is recent enough. This requires that sessions with pyzorder change an index
   * whenever they change the files (see Roots.isWatched). If `staleness` does not allow outdated
   * information, a cached listing is reused only for an InMemoryFileIndex, and the caller must
   * check each file in the listing before skipping it.
   *
   * @param options          the relation's options
   * @param selected         the partitions to list, and the relation's partition columns with their
   *                         planned types. If the partitions are not in the catalog, all are listed
   * @param journals         the folders' current journals
   * @param indexes          the folders' current indexes
   * @param staleness        how old the listing may be
   */
  def current(
      session: shim.SparkSession,
      wrapped: FileIndex,
      options: Map[String, String],
      selected: SelectedPartitions,
      folders: Seq[TableFolder],
      journals: Seq[JournalState],
      indexes: Seq[SnapshotRef],
      staleness: Staleness = Staleness.none): Listing = {

    /** The cached listing, or a new one. */
    def listed(at: Roots): Listing = {
      val keepsOwn = wrapped.isInstanceOf[InMemoryFileIndex] && !staleness.remembers
      val isWatched = at.isWatched(folders, indexes)
      def isFit(kept: Listing): Boolean =
        keepsOwn || isWatched && kept.asOf.exists(staleness.allows)
      val key = keyOf(journals, indexes, at)
      Option(cache.getIfPresent(wrapped)).filter(known => known.key == key && isFit(known.listing))
        .map(_.listing.copy(isFresh = false))
        .getOrElse {
          val recent = recentEnough(at, folders, indexes, staleness)
          val fresh = listing(session, at, folders, recent, indexes)
          val kept =
            if (at.fits(fresh.files)) fresh else Listing(wrapped, isFresh = false, asOf = None)
          cache.put(wrapped, Cached(key, kept))
          kept
        }
    }

    if (!isShared(wrapped, journals, indexes)) Listing(wrapped, isFresh = false, asOf = None)
    else Roots.of(session, wrapped, options, selected) match {
      case None => Listing(wrapped, isFresh = false, asOf = None)
      case Some(at) => listed(at)
    }
  }

  /**
   * Lists an unpartitioned table, and returns the file index that Spark would create for it. Spark
   * would list the table without regard to its journal, so `current` would have to list it again.
   * It uses the listing that is made here, unless the journal or the index has changed since then.
   *
   * @param metadata the metadata of the table
   * @param index    the table's index, if it has one
   * @return None if not all files are directly in the table's folder, because Spark might then
   *         infer partition columns from the names of subfolders. Also None if the files are not
   *         where Spark would list them, because a run is unfinished
   */
  def sparksIndex(
      session: shim.SparkSession,
      options: Map[String, String],
      metadata: ListedMetadata,
      index: Option[SnapshotRef]): Option[InMemoryFileIndex] = {
    val selected = SelectedPartitions.all(new StructType())
    val journal = Journal.read(session.sessionState.newHadoopConf(), metadata)
    val folders = Seq(metadata.folder)
    val at = Roots(
      folders.map(_.root), options, Some(selected.columns), None, pinned = Nil, key = None)
    if (journal.overlay.isDefined) None
    else listing(session, at, folders, Nil, index.toSeq) match {
      case Listing(files: JournaledFileIndex, _, asOf) if files.isFlat =>
        val own = new InMemoryFileIndex(
          session, at.paths, options, at.schema, new ListedOnce(files.statuses))
        Roots.of(session, own, options, selected).foreach { at =>
          val kept = Listing(files, isFresh = false, asOf)
          cache.put(own, Cached(keyOf(Seq(journal), index.toSeq, at), kept))
        }
        Some(own)
      case _ => None
    }
  }

  /** Gives the files to the first file index that asks for them. */
  private final class ListedOnce(files: Seq[FileStatus]) extends FileStatusCache {

    private var left = Option(files.toArray)

    override def getLeafFiles(path: Path): Option[Array[FileStatus]] = {
      val given = left
      left = None
      given
    }

    override def putLeafFiles(path: Path, leafFiles: Array[FileStatus]): Unit = ()

    override def invalidateAll(): Unit = left = None
  }

  /**
   * Lists a relation's files anew. Spark's own file index is refreshed if it turns out to be
   * outdated. It is returned if its class is not recognized or the partition columns have changed.
   *
   * @param selected the partitions to list; if they are not in the catalog, all are listed
   * @param folders  the folders whose journals are taken into account
   * @param indexes  indexes of the relation's files, which make the listing faster on S3
   */
  def anew(
      session: shim.SparkSession,
      wrapped: FileIndex,
      options: Map[String, String],
      selected: SelectedPartitions,
      folders: Seq[TableFolder],
      indexes: Seq[SnapshotRef]): FileIndex =
    Roots.of(session, wrapped, options, selected)
      .map(at => at -> listing(session, at, folders, Nil, indexes).files)
      .collect { case (at, files) if at.fits(files) => files }
      .map { files =>
        if (isOutdated(wrapped, files)) wrapped.refresh()
        files
      }
      .getOrElse {
        wrapped.refresh()
        wrapped
      }

  private def isOutdated(wrapped: FileIndex, now: FileIndex): Boolean = (wrapped, now) match {
    case (own: InMemoryFileIndex, files: InMemoryFileIndex) =>
      Roots.keyOf(own.allFiles()) != Roots.keyOf(files.allFiles())
    case _ => false
  }

  /**
   * The files that Spark's own file index has listed, in a file index that a refresh does not
   * change. None if the class of Spark's file index is not recognized, or if the partition columns
   * would differ.
   */
  def kept(
      session: shim.SparkSession,
      wrapped: InMemoryFileIndex,
      options: Map[String, String],
      selected: SelectedPartitions): Option[Listing] =
    for {
      at <- Roots.of(session, wrapped, options, selected)
      listed = wrapped.allFiles()
      files = new JournaledFileIndex(
        session, at.paths, at.options, at.schema, at.spec, Nil, at.pinned,
        paths => FilesBelow(listed, paths, paths.map(_ -> Nil).toMap))
      if at.fits(files)
    } yield Listing(files, isFresh = false, asOf = None)

  /**
   * The listings of several relations, extracted from one listing of all their root paths. None for
   * a relation if pyzorder does not recognize the class of its file index; only Spark can list
   * such a relation. Only the journals of a relation's own folders are applied to its files,
   * because a journal must not affect other tables.
   *
   * @param relations the relations, each with its options, its selected partitions and its folders
   */
  def together(
      session: shim.SparkSession,
      relations: Seq[(FileIndex, Map[String, String], SelectedPartitions, Seq[TableFolder])])
      : Seq[Option[Listing]] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val located = relations.map { case (wrapped, options, selected, folders) =>
      Roots.of(session, wrapped, options, selected).map(at => (at, trusting(folders, at)))
    }
    def look(): Seq[JournalLook] =
      for {
        (at, folders) <- located.flatten
        folder <- folders
      } yield JournalLook(hadoopConf, folder, at.paths, lists = true)
    JournalLook.unchangedDuring(() => look()) { _ =>
      val now = System.currentTimeMillis()
      val every = located.flatten.flatMap(_._1.paths).distinct
      val top =
        every.filterNot(path => every.exists(o => o != path && TableFolder.isAtOrBelow(path, o)))
      val files = new JournaledFileIndex(
        session, top, Map.empty, None, None, Nil, Nil, _ => Map.empty).statuses
      located.map(_.map { case (at, folders) =>
        val own = new JournaledFileIndex(
          session, at.paths, at.options, at.schema, at.spec, folders, at.pinned,
          paths => FilesBelow(files, paths, paths.map(_ -> Nil).toMap))
        Listing(own, isFresh = true, Some(now))
      })
    }
  }

  /**
   * Adds to `old` the partitions that `selected` contains and `old` lacks. The partitions that
   * `old` already contains are not listed again.
   */
  def extended(
      session: shim.SparkSession,
      old: Listing,
      wrapped: FileIndex,
      options: Map[String, String],
      selected: SelectedPartitions,
      folders: Seq[TableFolder],
      indexes: Seq[SnapshotRef],
      staleness: Staleness): Listing =
    if (old.files eq wrapped) old // Spark lists the partitions for each scan
    else {
      val known = old.files.rootPaths.toSet
      val more =
        for {
          at <- Roots.of(session, wrapped, options, selected)
          spec <- at.spec
          missing = spec.partitions.filterNot(partition => known(partition.path))
          if missing.nonEmpty
        } yield listing(
          session,
          at.copy(paths = missing.map(_.path), spec = Some(spec.copy(partitions = missing))),
          folders, recentEnough(at, folders, indexes, staleness), indexes)
      more.fold(old) { added =>
        val times = old.asOf ++ added.asOf
        Listing(
          new JoinedFileIndex(old.files, added.files), isFresh = false, times.reduceOption(_ min _))
      }
    }

  /** The indexes that may supply the files at these roots. */
  private def recentEnough(
      at: Roots,
      folders: Seq[TableFolder],
      indexes: Seq[SnapshotRef],
      staleness: Staleness): Seq[SnapshotRef] =
    if (!at.isWatched(folders, indexes)) Nil
    else indexes.filter(_.coverage.exists(known => staleness.allows(known.listedAt)))

  /**
   * Whether the table has a journal or an index, or had one when a query used `wrapped` before.
   * Other sessions then change the journal or the index when they write, but Spark refreshes only
   * the file index of the session that writes. `wrapped` itself is not refreshed, because running
   * queries may use it. It therefore stays outdated even if the index is later dropped or damaged.
   */
  private def isShared(
      wrapped: FileIndex,
      journals: Seq[JournalState],
      indexes: Seq[SnapshotRef]): Boolean = {
    val now = journals.exists(_.exists) || indexes.nonEmpty
    if (now) shared.put(wrapped, true)
    now || shared.getIfPresent(wrapped) != null
  }

  /** Discards the cached listing of `wrapped`. */
  def forget(wrapped: FileIndex): Unit = cache.invalidate(wrapped)

  /**
   * Lists the files at the roots. For a path that an index in `covering` covers, takes the files
   * from that index instead.
   *
   * @param indexes the indexes that say which names a folder probably contains
   */
  private def listing(
      session: shim.SparkSession,
      at: Roots,
      folders: Seq[TableFolder],
      covering: Seq[SnapshotRef],
      indexes: Seq[SnapshotRef]): Listing = {
    val now = System.currentTimeMillis()
    val snapshots = covering.flatMap(ref => SnapshotListing.of(session, ref).map(ref -> _))
    def known(paths: Set[Path]): Map[Path, Seq[FileStatus]] =
      snapshots.flatMap { case (ref, files) =>
        trusting(Seq(ref.folder), at).map(files.below(_, paths))
      }.foldLeft(Map.empty[Path, Seq[FileStatus]])(_ ++ _)
    lazy val indexed = indexes.flatMap(SnapshotListing.of(session, _))
    def names(folder: Path): Seq[String] = indexed.flatMap(_.namesIn(folder))
    val files = new JournaledFileIndex(
      session, at.paths, at.options, at.schema, at.spec, trusting(folders, at), at.pinned, known,
      names, lists = snapshots.isEmpty)
    val times = if (files.isListed) Nil else snapshots.flatMap(_._1.coverage).map(_.listedAt)
    Listing(files, isFresh = files.isListed, Some((now +: times).min))
  }

  /**
   * The same folders, except that the TableFolder of a catalog table also trusts the root paths,
   * because the catalog assigns them to the table.
   */
  private def trusting(folders: Seq[TableFolder], at: Roots): Seq[TableFolder] =
    folders.map(folder => if (folder.isInCatalog) folder.trusting(at.paths.toSet) else folder)

  /**
   * Whether a root path is a file in the folder of a table. A missing path counts as a file,
   * because an OPTIMIZE may have moved the file.
   */
  private def isFileOfTable(hadoopConf: Configuration, root: Path): Boolean =
    root.getParent != null && {
      val fs = root.getFileSystem(hadoopConf)
      TableFolder.upwards(root.getParent).exists(folder =>
        ListedMetadata.of(hadoopConf, new TableFolder(folder)).exists) &&
      FileSystems.status(fs, root).forall(_.isFile)
    }

  private def qualified(hadoopConf: Configuration, path: Path): Path =
    path.getFileSystem(hadoopConf).makeQualified(path)
}
