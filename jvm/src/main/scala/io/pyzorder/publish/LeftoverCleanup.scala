package io.pyzorder.publish

import java.util.concurrent.{Executors, TimeUnit}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration

import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * What a run has left in a folder that is not its table any more. A disk deletes a folder file by
 * file, and not at all if a file comes into it meanwhile, such as a record of a writer that has not
 * noticed yet: then the folder of a table that was dropped stays, and is in the way of a new table
 * of that name.
 */
private[publish] object LeftoverCleanup {

  /**
   * Seconds after DONE. Who deletes the folder may have listed its files before DONE came, and be
   * slow to delete the others: until then nothing tells that they go.
   */
  private val Moments = Seq(1L, 10L)

  private lazy val clock = Executors.newSingleThreadScheduledExecutor { look =>
    val thread = new Thread(look, "zorder-remains")
    thread.setDaemon(true)
    thread
  }

  /** Looks after a run's remains when that has ended; not when the process ends before. */
  def lookLater(look: () => Unit): Unit = Moments.foreach { seconds =>
    val attempt: Runnable = () =>
      try look()
      catch { case NonFatal(_) => () } // the store cannot be asked
    clock.schedule(attempt, seconds, TimeUnit.SECONDS)
  }

  /**
   * Deletes the `_zorder` of a folder in which there is nothing else, for the first writer of its
   * life: the table went while that began.
   */
  def clearIfEmpty(hadoopConf: Configuration, folder: TableFolder): Unit = {
    val fs = folder.root.getFileSystem(hadoopConf)
    if (FileSystems.list(fs, folder.root).forall(_.getPath.getName == TableFolder.Name)) {
      fs.delete(folder.zorder, true)
    }
  }
}
