package io.pyzorder.publish

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.index.IndexStore

/**
 * What a run has left in a folder that is not its table any more. A disk deletes a folder file by
 * file, and not at all if a file comes into it meanwhile, such as a record of a writer that has not
 * noticed yet: then the folder of a table that was dropped stays, and is in the way of a new table
 * of that name.
 */
private[publish] object Remains {

  /**
   * Deletes the `_zorder` of a folder in which there is nothing else, for the first writer of its
   * life: the table went while that began.
   */
  def clearIfEmpty(hadoopConf: Configuration, folder: TableFolder): Unit = {
    val fs = folder.root.getFileSystem(hadoopConf)
    if (Journal.list(fs, folder.root).forall(_.getPath.getName == TableFolder.Name)) {
      fs.delete(folder.zorder, true)
    }
  }

  /**
   * Deletes the run's records, the index of that life of the table, and folders that are empty
   * then. Nothing else is taken away, for it may be of a new life.
   */
  def clear(
      hadoopConf: Configuration,
      folder: TableFolder,
      run: Long,
      incarnation: String): Unit = {
    attempt(IndexStore.removeOf(hadoopConf, folder, incarnation))
    clearRecords(hadoopConf, folder, run, incarnation)
  }

  /**
   * Deletes the run's records, and folders that are empty then. A run of the same number in a new
   * life has records of the same names: what they say tells whose they are.
   */
  def clearRecords(
      hadoopConf: Configuration,
      folder: TableFolder,
      run: Long,
      incarnation: String): Unit = {
    val fs = folder.zorder.getFileSystem(hadoopConf)
    Journal.list(fs, folder.journal).map(_.getPath)
      .filter(_.getName.startsWith(s"_$run.")).foreach { record =>
        attempt {
          if (Records.incarnation(Journal.readFully(fs, record)).contains(incarnation)) {
            fs.delete(record, false)
          }
        }
      }
    Seq(folder.staging(run), folder.retired(run), folder.index, folder.journal)
      .foreach(place => attempt(OwnFiles.removeEmpty(hadoopConf, place)))
  }

  private def attempt(act: => Unit): Unit =
    try act
    catch { case NonFatal(_) => () } // it is gone, or a folder that holds something
}
