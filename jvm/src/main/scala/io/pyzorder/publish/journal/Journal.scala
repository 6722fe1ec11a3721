package io.pyzorder.publish.journal

import java.io.FileNotFoundException

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.pyzorder.storage.{FileSystems, TableFolder}
import io.pyzorder.storage.metadata.{ListedMetadata, MetadataNames}

/**
 * The journal of a table, which records what each run intends to do and how it ended. Records are
 * created once and never changed. The last run is the one with the greatest number. At most one run
 * is unfinished.
 */
object Journal {

  /** Record bodies, keyed by path, modification time and size. Records never change. */
  private val bodies: Cache[(Path, Long, Long), Array[Byte]] =
    CacheBuilder.newBuilder().maximumSize(64).softValues().build[(Path, Long, Long), Array[Byte]]()

  /** Reads the last run with one listing. Returns JournalState.none if there is no journal. */
  def read(hadoopConf: Configuration, folder: TableFolder): JournalState =
    read(hadoopConf, ListedMetadata.of(hadoopConf, folder))

  /** Like `read`, but uses an existing listing. */
  def read(hadoopConf: Configuration, listed: ListedMetadata): JournalState = {
    val folder = listed.folder
    val fs = folder.journal.getFileSystem(hadoopConf)
    val all = records(listed.journal)
    if (all.isEmpty) {
      JournalState.none
    } else {
      val last = all.map(_._1).max
      val kinds = all.collect { case (`last`, kind, status) => kind -> status }.toMap
      new JournalState(fs, folder, last, kinds)
    }
  }

  /** All runs in the journal, in no particular order. Reads them with one listing. */
  private[publish] def runs(hadoopConf: Configuration, folder: TableFolder): Seq[JournalState] = {
    val fs = folder.journal.getFileSystem(hadoopConf)
    records(FileSystems.list(fs, folder.journal)).groupBy(_._1).toSeq.map { case (run, ofRun) =>
      new JournalState(fs, folder, run, ofRun.map(r => r._2 -> r._3).toMap)
    }
  }

  /**
   * When each finished run ended, in milliseconds since the epoch according to the store's clock.
   */
  private[publish] def ended(hadoopConf: Configuration, folder: TableFolder): Map[Long, Long] =
    records(FileSystems.list(folder.journal.getFileSystem(hadoopConf), folder.journal))
      .collect { case (run, "done", status) => run -> status.getModificationTime }.toMap

  private def records(files: Seq[FileStatus]): Seq[(Long, String, FileStatus)] =
    files.flatMap(status =>
      MetadataNames.recordOf(status.getPath.getName).map { case (run, kind) =>
        (run, kind, status)
      })

  /** The bytes of a record; None if it is gone because the table was overwritten. */
  private[publish] def body(fs: FileSystem, status: FileStatus): Option[Array[Byte]] = {
    val key = (status.getPath, status.getModificationTime, status.getLen)
    Option(bodies.getIfPresent(key)).orElse {
      val read =
        try Some(FileSystems.readFully(fs, status.getPath))
        catch { case _: FileNotFoundException => None }
      read.foreach(bodies.put(key, _))
      read
    }
  }
}
