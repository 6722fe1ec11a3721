package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{FileSystems, Links, RunNumber, TableFolder}

/**
 * The empty file that a run places in every folder in which it moves files. It is created before
 * RETIRE and deleted after DONE. Overwriting or dropping a partition deletes its folder and the
 * marker in it. The table's `_zorder` folder does not reveal such a change, because it survives
 * when a partition is overwritten or dropped.
 */
object Marker {

  private val Name = "^_zorder\\.(\\d+)\\.(.+)$".r

  /** The marker of run 7 in folder `day=1` is `day=1/_zorder.7.<incarnation>`. */
  def path(table: TableFolder, run: Long, incarnation: String, folder: String): Path =
    new Path(table.resolve(folder), s"_zorder.$run.$incarnation")

  /** Whether a file with this name is the marker of another table or incarnation. */
  def isForeign(name: String, incarnation: String): Boolean =
    Name.findFirstIn(name).isDefined && runOf(name, incarnation).isEmpty

  /**
   * The folders inside the table's folder that contain the run's marker. If a run was killed before
   * it wrote its RETIRE record, only its markers show in which folders it was about to move files.
   * Lists the whole table.
   */
  def left(
      hadoopConf: Configuration,
      table: TableFolder,
      run: Long,
      incarnation: String): Seq[String] = {
    val name = path(table, run, incarnation, "").getName
    val fs = table.root.getFileSystem(hadoopConf)
    def below(folder: Path): Seq[String] = {
      val found = FileSystems.list(fs, folder)
      val folders = found.filter(entry =>
        entry.isDirectory && !TableFolder.isHiddenName(entry.getPath.getName) &&
          !Links.isOne(entry.getPath))
      found.filter(_.getPath.getName == name).map(_ => table.relativize(folder)) ++
        folders.flatMap(entry => below(entry.getPath))
    }
    below(table.root)
  }

  /**
   * The number of the run whose markers have this name; None if no marker in this incarnation has
   * such a name.
   */
  def runOf(name: String, incarnation: String): Option[Long] = name match {
    case Name(run, `incarnation`) => RunNumber.of(run)
    case _ => None
  }

  /**
   * Whether a folder that `record` names is a copy of the folder in which the marker was created.
   * In a copy, the files' modification times differ from those in the record. A marker is written
   * once and never moved, so its modification time changes only if it is copied.
   */
  def isCopied(
      hadoopConf: Configuration,
      table: TableFolder,
      run: Long,
      record: RetireRecord,
      folder: String): Boolean =
    record.marked.get(folder).exists { time =>
      val marker = path(table, run, record.incarnation, folder)
      FileSystems.status(marker.getFileSystem(hadoopConf), marker)
        .exists(_.getModificationTime != time)
    }

  def present(
      hadoopConf: Configuration,
      table: TableFolder,
      run: Long,
      incarnation: String,
      folder: String): Boolean = {
    val marker = path(table, run, incarnation, folder)
    FileSystems.exists(marker.getFileSystem(hadoopConf), marker)
  }
}
