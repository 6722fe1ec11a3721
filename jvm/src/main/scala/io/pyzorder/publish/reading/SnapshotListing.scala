package io.pyzorder.publish.reading

import java.util.Arrays

import scala.collection.mutable

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ReadFailure
import io.pyzorder.index.memory.IndexSnapshot
import io.pyzorder.index.store.{Coverage, IndexStore, IndexWarnings, SnapshotChecks, SnapshotRef}
import io.pyzorder.storage.TableFolder

/**
 * The data files of a table according to its index, determined without a request to the store.
 *
 * @param coverage the folders whose files are all in the index
 * @param folders  the files that have an entry in the index, keyed by folder
 */
final class SnapshotListing private (
    coverage: Coverage,
    folders: Map[Path, IndexedStatuses]) {

  /** Whether all of the files are directly in this folder. */
  def isFlat(folder: Path): Boolean = folders.keys.forall(_ == folder)

  /** The names of the files in a folder that have an entry in the index. */
  def namesIn(folder: Path): Seq[String] = folders.get(folder).fold(Seq.empty[String])(_.fileNames)

  /**
   * The files at or below each of these paths. Paths that the index does not cover are missing from
   * the result. So are paths without files, because the caller can list them cheaply.
   *
   * Names in the index may be forged, but each file in the result is below a path that the caller
   * would have listed, and in a folder that `table` trusts. An index therefore cannot add files to
   * another folder that the same query reads by path.
   *
   * @param table the folder of the index, and the partition locations that the caller knows
   */
  def below(table: TableFolder, paths: Set[Path]): Map[Path, Seq[FileStatus]] = {
    val own = folders.filter { case (folder, _) => table.trusts(table.relativize(folder)) }
    val found = own.toSeq.flatMap { case (folder, files) =>
      val inOwn = coverage.isWhole && TableFolder.isAtOrBelow(folder, table.root)
      val above = if (inOwn) SnapshotListing.upwards(folder).find(paths) else Some(folder)
      above.filter(paths).map(_ -> files)
    }
    found.groupBy(_._1).map {
      case (path, Seq((_, files))) => path -> files
      case (path, each) => path -> each.flatMap(_._2)
    }
  }
}

object SnapshotListing {

  /**
   * The listing of each snapshot, keyed by the snapshot's identity and dropped together with the
   * snapshot.
   */
  private val cache: Cache[IndexSnapshot, SnapshotListing] =
    CacheBuilder.newBuilder().weakKeys().build[IndexSnapshot, SnapshotListing]()

  /**
   * The files that a snapshot covers. None if the snapshot does not cover any folder, cannot be
   * read, or does not fit in memory.
   */
  def of(session: shim.SparkSession, ref: SnapshotRef): Option[SnapshotListing] =
    for {
      coverage <- ref.coverage
      if fitsMemory(ref)
      listing <- IndexStore.loadAll(session, ref)(snapshot =>
        cache.get(snapshot,
          () => make(session.sessionState.newHadoopConf(), ref.folder, coverage, snapshot)))
    } yield listing

  private def fitsMemory(ref: SnapshotRef): Boolean =
    try {
      SnapshotChecks.listing(ref)
      true
    } catch {
      case ReadFailure(failure) =>
        IndexWarnings.unusable(ref, failure)
        false
    }

  private def make(
      hadoopConf: Configuration,
      table: TableFolder,
      coverage: Coverage,
      snapshot: IndexSnapshot): SnapshotListing = {
    val blockSize = table.root.getFileSystem(hadoopConf).getDefaultBlockSize(table.root)
    val names = snapshot.paths()
    // A forged snapshot may name a file twice: by its name and by its fully qualified path.
    val folders = entriesByFolder(names)
      .filter { case (folder, _) => folder.isEmpty || table.resolve(folder) != table.root }
      .groupBy { case (folder, _) => table.resolve(folder) }
    new SnapshotListing(coverage,
      folders.map { case (folder, each) =>
        val entries = each.valuesIterator.reduce(_ ++ _)
        folder -> new IndexedStatuses(table, folder, snapshot, names, blockSize, entries)
      })
  }

  /**
   * The positions of the files in each folder. The folders and `names` are relative to the table's
   * folder. Leaves out the names that must be forged.
   */
  private def entriesByFolder(names: Array[String]): Map[String, Array[Int]] = {
    val folderOf = new Array[String](names.length)
    Arrays.parallelSetAll[String](folderOf,
      (i: Int) =>
        if (isForged(names(i))) null
        else names(i).substring(0, math.max(0, names(i).lastIndexOf('/'))))
    val folders = mutable.HashMap.empty[String, mutable.ArrayBuilder[Int]]
    var i = 0
    while (i < names.length) {
      if (folderOf(i) != null)
        folders.getOrElseUpdate(folderOf(i), Array.newBuilder[Int]) += i
      i += 1
    }
    folders.iterator.map { case (folder, entries) => folder -> entries.result() }.toMap
  }

  /**
   * Whether a name must be forged, because no listing of the table could find a file with this
   * name.
   */
  private def isForged(name: String): Boolean =
    TableFolder.leaves(name) || TableFolder.isHidden(name)

  private def upwards(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)
}
