package io.pyzorder.publish.journal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{FileSystems, Links, RunNumber, TableFolder}

/**
 * The empty file a run puts into every folder it touches, before RETIRE and until after DONE.
 * Overwriting or dropping a partition deletes its folder, and the marker with it; `_zorder` in the
 * table's folder, which a partition's overwrite leaves alone, would not tell.
 */
object Marker {

  private val Name = "^_zorder\\.(\\d+)\\.(.+)$".r

  /** `day=1` of run 7: `day=1/_zorder.7.<incarnation>`. */
  def path(table: TableFolder, run: Long, incarnation: String, folder: String): Path =
    new Path(table.resolve(folder), s"_zorder.$run.$incarnation")

  /** Whether a file of that name is a marker of another table, or of another life of this one. */
  def isForeign(name: String, incarnation: String): Boolean =
    Name.findFirstIn(name).isDefined && runOf(name, incarnation).isEmpty

  /**
   * The folders of the table, those that lie in its own, where a run has left its marker: what a
   * run that was killed before its RETIRE record has told nobody. Lists the whole table.
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
      found.filter(_.getPath.getName == name).map(_ => table.relativize(folder)) ++
        found.filter(entry => entry.isDirectory && !isHiddenName(entry.getPath.getName))
          .filterNot(entry => Links.isOne(entry.getPath))
          .flatMap(entry => below(entry.getPath))
    }
    below(table.root)
  }

  /** Whether Spark's listings leave a file out, named as in FileRef, by a name on its path. */
  def isHidden(path: String): Boolean =
    if (TableFolder.isWhole(path)) isHiddenName(path.substring(path.lastIndexOf('/') + 1))
    else path.split('/').exists(isHiddenName)

  /** As Spark has it: a partition's folder may begin with an underscore. */
  private def isHiddenName(name: String): Boolean =
    name.startsWith(".") || (name.startsWith("_") && !name.contains("="))

  /** The run whose marker a file of that name is, in this life of the table. */
  def runOf(name: String, incarnation: String): Option[Long] = name match {
    case Name(run, `incarnation`) => RunNumber.of(run)
    case _ => None
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
