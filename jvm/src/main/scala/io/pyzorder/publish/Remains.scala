package io.pyzorder.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

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
}
