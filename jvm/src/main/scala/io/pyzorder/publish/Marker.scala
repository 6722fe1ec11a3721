package io.pyzorder.publish

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

/**
 * The empty file a run puts into every folder it touches, before RETIRE and until after DONE.
 * Overwriting or dropping a partition deletes its folder, and the marker with it; `_zorder` in the
 * table's folder, which a partition's overwrite leaves alone, would not tell.
 */
object Marker {

  /** `day=1` of run 7: `day=1/_zorder.7.<incarnation>`. */
  def path(table: TableFolder, run: Long, incarnation: String, folder: String): Path =
    new Path(table.resolve(folder), s"_zorder.$run.$incarnation")

  def present(
      hadoopConf: Configuration,
      table: TableFolder,
      run: Long,
      incarnation: String,
      folder: String): Boolean = {
    val marker = path(table, run, incarnation, folder)
    Journal.exists(marker.getFileSystem(hadoopConf), marker)
  }
}
