package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * The folders that a table's location is switched between: `sales`, then `sales-zorder-3f2a9c1d`
 * beside it. A name is random and never used twice, so that what a record says of one is never true
 * of another.
 */
private[pyzorder] object SiblingFolder {

  private val Switched = "(.+)-zorder-[0-9a-f]{8}".r

  /** A name that no folder has, for a folder beside `folder`. */
  def newName(folder: TableFolder): String =
    s"${baseOf(folder.root.getName)}-zorder-${UUID.randomUUID().toString.take(8)}"

  /** Whether `newName` gives such names. */
  def isOne(name: String): Boolean =
    Switched.findFirstIn(name).contains(name) && !TableFolder.leaves(name) && !name.contains("/") &&
      !TableFolder.isWhole(name)

  /** The folder of that name beside `folder`. */
  def of(folder: TableFolder, name: String): TableFolder =
    new TableFolder(TableFolder.below(folder.root.getParent, name))

  /** Whether `folder` can have been made beside the table's, for it. */
  def isBeside(table: TableFolder, folder: Path): Boolean =
    folder.getParent != null && folder.getParent == table.root.getParent &&
      isOne(folder.getName) && baseOf(folder.getName) == baseOf(table.root.getName)

  /** The data files that any engine sees in a folder. */
  def dataFiles(hadoopConf: Configuration, folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder).filter { status =>
      val name = status.getPath.getName
      status.isFile && !name.startsWith("_") && !name.startsWith(".") &&
      !name.endsWith("._COPYING_")
    }

  /** The file of a folder that names the one it was filled from. */
  def originFile(folder: TableFolder): Path = new Path(folder.zorder, "_from")

  /**
   * The folder that a folder was filled from; None: it was not, or VACUUM has deleted that one.
   * What it says counts only with what that folder's journal says: whoever may write into one of
   * the two can forge one half.
   */
  def origin(hadoopConf: Configuration, folder: TableFolder): Option[TableFolder] = {
    val file = originFile(folder)
    try Some(new String(FileSystems.readFully(file.getFileSystem(hadoopConf), file), UTF_8).trim)
        .filterNot(name => TableFolder.leaves(name) || name.contains("/"))
        .filter(name => baseOf(name) == baseOf(folder.root.getName)).map(of(folder, _))
    catch { case _: FileNotFoundException => None }
  }

  private def baseOf(name: String): String = name match {
    case Switched(base) => base
    case other => other
  }
}
