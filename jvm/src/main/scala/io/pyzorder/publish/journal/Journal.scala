package io.pyzorder.publish.journal

import java.io.FileNotFoundException

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.pyzorder.storage.{FileSystems, RunNumber, TableFolder}

/**
 * The journal of a table: what its OPTIMIZE runs were about to do, in records that are created once
 * and never changed. A run is the greatest number n of `_<n>.prepare`; only one is ever unfinished.
 */
object Journal {

  private val RecordName = "_(\\d+)\\.(prepare|retire|switch|partitions|outcome|done)".r

  /** Records by path and modification time; they never change. Soft: the memory may be needed. */
  private val bodies: Cache[(Path, Long, Long), Array[Byte]] =
    CacheBuilder.newBuilder().maximumSize(64).softValues().build[(Path, Long, Long), Array[Byte]]()

  /** The path of a record of run `run`; `kind` as in RecordName. */
  def path(folder: TableFolder, run: Long, kind: String): Path =
    new Path(folder.journal, s"_$run.$kind")

  /** The journal as it is now: one listing. JournalState.none when there is no journal. */
  def read(hadoopConf: Configuration, folder: TableFolder): JournalState = {
    val fs = folder.journal.getFileSystem(hadoopConf)
    val all = records(fs, folder)
    if (all.isEmpty) {
      JournalState.none
    } else {
      val last = all.map(_._1).max
      val kinds = all.collect { case (`last`, kind, status) => kind -> status }.toMap
      new JournalState(fs, folder, last, kinds)
    }
  }

  /** Every run of the journal, in no order; one listing. */
  private[publish] def runs(hadoopConf: Configuration, folder: TableFolder): Seq[JournalState] = {
    val fs = folder.journal.getFileSystem(hadoopConf)
    records(fs, folder).groupBy(_._1).toSeq.map { case (run, ofRun) =>
      new JournalState(fs, folder, run, ofRun.map(r => r._2 -> r._3).toMap)
    }
  }

  /** When each run was done, in milliseconds since the epoch by the store's clock; one listing. */
  private[publish] def ended(hadoopConf: Configuration, folder: TableFolder): Map[Long, Long] =
    records(folder.journal.getFileSystem(hadoopConf), folder)
      .collect { case (run, "done", status) => run -> status.getModificationTime }.toMap

  private def records(fs: FileSystem, folder: TableFolder): Seq[(Long, String, FileStatus)] =
    FileSystems.list(fs, folder.journal).flatMap { status =>
      status.getPath.getName match {
        case RecordName(run, kind) => RunNumber.of(run).map((_, kind, status))
        case _ => None
      }
    }

  /** The bytes of a record; None: it is not there any more (the table was overwritten). */
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
