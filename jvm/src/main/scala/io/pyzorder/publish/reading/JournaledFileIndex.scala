package io.pyzorder.publish.reading

import java.util.Locale

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat
import org.apache.spark.metrics.source.HiveCatalogMetrics
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{
  Expression, FileSourceConstantMetadataAttribute, PlanExpression
}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources.{
  InMemoryFileIndex, PartitionDirectory, PartitionSpec, PathFilterFactory
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

import io.pyzorder.storage.{FileRef, FileSystems, FilesByFolder, MoveFile, TableFolder}
import io.pyzorder.storage.listing.FolderListing

/**
 * A listing whose files contain every row of the tables in `folders` exactly once, even during an
 * OPTIMIZE. Files appear under their own names even while they are in `_zorder/_staging/` or
 * `_zorder/_retired/`. ZOrderParquetFileFormat and ZOrderOrcFileFormat find and open these files.
 *
 * This index reads the journals, lists the paths, looks for the files that an unfinished run has
 * moved (see Overlay for why none is missed) and reads the journals again. If a journal has
 * changed, it starts over (see JournalLook).
 *
 * @param folders the folders of the tables to which the paths may belong. Each of them trusts
 *                partition locations that the catalog names, but not locations that only the
 *                folder's journal names
 * @param pinned  root paths that were files when the query was planned. They are listed even if
 *                they no longer exist, because readers find a file that an OPTIMIZE has moved
 * @param known   returns, for each given path that need not be listed, the files at or below it
 * @param names   returns the names of files that are probably in a folder (see FolderListing)
 * @param lists   see JournalLook
 */
final class JournaledFileIndex(
    session: SparkSession,
    paths: Seq[Path],
    parameters: Map[String, String],
    schema: Option[StructType],
    spec: Option[PartitionSpec],
    folders: Seq[TableFolder],
    pinned: Seq[FileStatus],
    known: Set[Path] => Map[Path, Seq[FileStatus]],
    names: Path => Seq[String] = _ => Nil,
    lists: Boolean = true)
    extends InMemoryFileIndex(
      session, paths, parameters, schema, userSpecifiedPartitionSpec = spec) {

  /**
   * All files, including those that options such as pathGlobFilter exclude. Set by the superclass
   * constructor, so an initial value would overwrite it.
   */
  private var found: Seq[FileStatus] = _

  /** Whether some of the files come from `known`. Set by the superclass constructor, too. */
  private var isPartlyKnown: Boolean = _

  /** Whether all files were listed, so that none comes from `known`. */
  def isListed: Boolean = !isPartlyKnown

  /**
   * Called by the superclass constructor, when only constructor parameters are initialized. The
   * superclass would arrange the files by path and by folder at once, which takes a long time if
   * there are many. This class does that itself when necessary.
   */
  override def listLeafFiles(roots: Seq[Path]): mutable.LinkedHashSet[FileStatus] = {
    found =
      JournalLook.unchangedDuring(() =>
        folders.map(JournalLook(hadoopConf, _, roots, lists))) { looks =>
        overlay(roots, filesBelow(roots), looks)
      }
    mutable.LinkedHashSet.empty
  }

  private lazy val byPath: mutable.LinkedHashMap[Path, FileStatus] =
    mutable.LinkedHashMap[Path, FileStatus]() ++= found.iterator.map(s => s.getPath -> s)

  private lazy val byFolder: Map[Path, Array[FileStatus]] =
    FilesByFolder(found).map { case (folder, files) => folder -> files.toArray }

  override protected def leafFiles: mutable.LinkedHashMap[Path, FileStatus] = byPath

  override protected def leafDirToChildrenFiles: Map[Path, Array[FileStatus]] = byFolder

  /**
   * Whether all files are directly in the root paths. If so, there are no partitions, and Spark
   * need not look for them.
   */
  lazy val isFlat: Boolean = {
    def folders = found match {
      case files: IndexedStatuses => Iterator(files.folder)
      case _ => byFolder.keysIterator
    }
    spec.isEmpty && !parameters.keys.exists(_.equalsIgnoreCase("basePath")) &&
    folders.forall(rootPaths.toSet)
  }

  override def partitionSpec(): PartitionSpec =
    if (isFlat) PartitionSpec.emptySpec else super.partitionSpec()

  /** Does nothing, because these are the files at one moment. */
  override def refresh(): Unit = ()

  /** The last request to listFiles and its result. The steps of planning repeat the request. */
  @volatile private var last: Option[(Seq[Expression], Seq[PartitionDirectory])] = None

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]): Seq[PartitionDirectory] = {
    val onFiles = dataFilters.filter(_.references.exists {
      case FileSourceConstantMetadataAttribute(_) => true
      case _ => false
    })
    val filters = partitionFilters ++ onFiles
    last.collect { case (`filters`, partitions) => partitions }.getOrElse {
      val partitions = (found match {
        case files: IndexedStatuses if isFlat && onFiles.isEmpty && !selectsPaths =>
          Seq(PartitionDirectory(InternalRow.empty, files.forScan))
        case _ =>
          super.listFiles(partitionFilters, onFiles).map(directory =>
            directory.copy(files = directory.files.toIndexedSeq))
      }).toIndexedSeq
      // The result of a subquery may change.
      if (!filters.exists(_.exists(_.isInstanceOf[PlanExpression[_]])))
        last = Some((filters, partitions))
      partitions
    }
  }

  /** Whether options or settings may exclude some of the files. */
  private def selectsPaths: Boolean =
    PathFilterFactory.create(CaseInsensitiveMap(parameters)).nonEmpty || selectsNames

  /**
   * Whether an option or a setting determines which names listings hide. Spark 4.3 introduced both.
   */
  private def selectsNames: Boolean =
    CaseInsensitiveMap(parameters).contains(JournaledFileIndex.HiddenNames) ||
      SQLConf.get.contains(s"spark.sql.files.${JournaledFileIndex.HiddenNames}")

  private def filesBelow(roots: Seq[Path]): Seq[FileStatus] = {
    val covered = known(roots.toSet)
    isPartlyKnown = covered.nonEmpty
    val found = covered ++ listedFast(roots.distinct.filterNot(covered.contains))
    val unknown = roots.filterNot(found.contains)
    def files = roots.distinct.flatMap(found.getOrElse(_, Nil))
    if (unknown.isEmpty) roots.distinct match {
      case Seq(root) => found(root)
      case _ => files
    }
    else (mutable.LinkedHashSet[FileStatus]() ++= files ++= super.listLeafFiles(unknown)).toSeq
  }

  /** The files in those of the given folders that FolderListing can list. */
  private def listedFast(folders: Seq[Path]): Map[Path, Seq[FileStatus]] = {
    // Hadoop may have been configured with a class that selects files.
    val selects = selectsNames || hadoopConf.get(FileInputFormat.PATHFILTER_CLASS) != null
    if (selects) Map.empty
    else {
      val listed = folders.flatMap(folder =>
        FolderListing(folder.getFileSystem(hadoopConf), folder, names(folder)).map(folder -> _))
      HiveCatalogMetrics.incrementFilesDiscovered(listed.map(_._2.length).sum) // as Spark does
      listed.toMap
    }
  }

  /** All files, including those that options such as pathGlobFilter exclude. */
  def statuses: Seq[FileStatus] = found

  private def overlay(
      roots: Seq[Path],
      listed: Seq[FileStatus],
      looks: Seq[JournalLook]): Seq[FileStatus] =
    if (pinned.isEmpty && looks.forall(_.overlay.isEmpty)) listed
    else corrected(roots, listed, looks)

  private def corrected(
      roots: Seq[Path],
      listed: Seq[FileStatus],
      looks: Seq[JournalLook]): Seq[FileStatus] = {
    val result = mutable.LinkedHashMap[Path, FileStatus]()
    listed.foreach(status => result.put(status.getPath, status))
    for (look <- looks; over <- look.overlay) {
      val added = over.added.toSet
      (over.hidden ++ added.filter(file => look.lost(file.folder))).foreach { file =>
        val path = over.table.resolve(file.path)
        // An old file that has not been moved yet still has the recorded modification time, unless
        // its folder is a copy. A new file's modification time may have changed when the file was
        // moved in.
        val same = result.get(path).exists(s =>
          s.getLen == file.size &&
            (added(file) || s.getModificationTime == file.modificationTime ||
              over.isCopied(hadoopConf, file.folder)))
        if (same) result.remove(path)
      }
      for (file <- over.shown if !look.lost(file.folder)) {
        val path = over.table.resolve(file.path)
        val isBelow = roots.exists(TableFolder.isAtOrBelow(path, _))
        if (!result.contains(path) && isBelow && fits(over.table, file, roots)) {
          val fs = path.getFileSystem(hadoopConf)
          FileSystems.status(fs, over.otherPlace(file))
            .filter(found => found.isFile && found.getLen == file.size) match {
            case Some(found) =>
              // In a copy of the folder, the time may differ from the recorded one.
              val time =
                if (MoveFile.keepsTime(fs)) found.getModificationTime else file.modificationTime
              result.put(path, statusOf(fs.getDefaultBlockSize(path), file.size, time, path))
            case None =>
              FileSystems.status(fs, path).filter(_.isFile).foreach(result.put(path, _))
          }
        }
      }
    }
    pinned.foreach(status =>
      if (!result.contains(status.getPath)) {
        result.put(status.getPath, status)
      })
    result.values.toSeq
  }

  /**
   * Whether the names of a file's folders contain exactly the partition columns of the plan. A
   * forged record may name a file whose folder names contain other columns. Spark's partition
   * inference would then fail.
   */
  private def fits(table: TableFolder, file: FileRef, roots: Seq[Path]): Boolean = {
    val names = file.folder.split('/').filter(_.contains('=')).map(_.takeWhile(_ != '=')).toSeq
    spec.isDefined || Roots.isRecursive(parameters) || schema.forall { columns =>
      val planned = columns.fieldNames.toSeq.map(_.toLowerCase(Locale.ROOT))
      val found = names.map(name =>
        ExternalCatalogUtils.unescapePathName(name).toLowerCase(Locale.ROOT))
      if (roots.contains(table.root)) found == planned else found.endsWith(planned)
    }
  }

  private def statusOf(blockSize: Long, size: Long, time: Long, path: Path): FileStatus =
    new FileStatus(size, false, 1, blockSize, time, path)
}

private object JournaledFileIndex {
  private val HiddenNames = "ignoredPathSegmentRegex"
}
