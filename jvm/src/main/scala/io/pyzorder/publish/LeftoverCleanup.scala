package io.pyzorder.publish

import java.util.concurrent.{Executors, TimeUnit}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * Removes the files that a run has left in a folder that no longer belongs to the table. On local
 * disks, a folder is deleted file by file, and the deletion fails if another file is added in the
 * meantime. A writer that has not noticed the deletion yet may add such a file. The folder of a
 * dropped table would then remain and block a new table of the same name.
 */
private[publish] object LeftoverCleanup {

  /**
   * The times of the cleanups, in seconds after DONE. A process that deletes the table's folder may
   * have listed the files before DONE was written, and may take a while to delete them. Until some
   * of the files have been deleted, the deletion cannot be detected.
   */
  private val Moments = Seq(1L, 10L)

  private lazy val clock = Executors.newSingleThreadScheduledExecutor { look =>
    val thread = new Thread(look, "zorder-leftover-cleanup")
    thread.setDaemon(true)
    thread
  }

  /**
   * Schedules the cleanup `look` for each time in `Moments`. A cleanup does not run if the process
   * has ended by then.
   */
  def lookLater(look: () => Unit): Unit = Moments.foreach { seconds =>
    val attempt: Runnable = () =>
      try look()
      catch { case NonFatal(_) => () } // the store is unavailable
    clock.schedule(attempt, seconds, TimeUnit.SECONDS)
  }

  /**
   * Deletes `_zorder` if the table's folder contains nothing else. The first writer of an
   * incarnation calls this method, because the table may have been deleted while the writer was
   * starting.
   */
  def clearIfEmpty(hadoopConf: Configuration, folder: TableFolder): Unit = {
    val fs = folder.root.getFileSystem(hadoopConf)
    if (FileSystems.list(fs, folder.root).forall(_.getPath.getName == TableFolder.Name)) {
      fs.delete(folder.zorder, true)
    }
  }
}
