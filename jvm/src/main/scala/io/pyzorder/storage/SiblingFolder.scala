package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

/**
 * The folders to which a table's location is switched. Each is beside the original folder: for
 * example, `sales-zorder-3f2a9c1d` is beside `sales`. Every new name ends in random hexadecimal
 * digits and is never reused, so a record about one folder never applies to another.
 */
private[pyzorder] object SiblingFolder {

  private val Switched = "(?s)(.+)-zorder-[0-9a-f]{8}".r

  /** A new, unused name for a folder beside `folder`. */
  def newName(folder: TableFolder): String =
    s"${baseOf(folder.root.getName)}-zorder-${UUID.randomUUID().toString.take(8)}"

  /** Whether a name has the form that `newName` generates. */
  def isOne(name: String): Boolean =
    Switched.findFirstIn(name).contains(name) && !TableFolder.leaves(name) && !name.contains("/") &&
      !TableFolder.isWhole(name)

  /** The folder called `name` beside `folder`. */
  def of(folder: TableFolder, name: String): TableFolder =
    new TableFolder(TableFolder.below(folder.root.getParent, name))

  /** Whether `folder`, judged by its location and name, may have been created for the table. */
  def isBeside(table: TableFolder, folder: Path): Boolean =
    folder.getParent != null && folder.getParent == table.root.getParent &&
      isOne(folder.getName) && baseOf(folder.getName) == baseOf(table.root.getName)

  /**
   * The data files directly in a folder, which are the files that other engines read. Files in
   * subfolders are excluded.
   */
  def dataFiles(hadoopConf: Configuration, folder: Path): Seq[FileStatus] =
    FileSystems.list(folder.getFileSystem(hadoopConf), folder).filter(status =>
      status.isFile && !TableFolder.isHiddenName(status.getPath.getName))

  /** The file that records the folder from which `folder` was filled. */
  def originFile(folder: TableFolder): Path = new Path(folder.zorder, "_from")

  /**
   * The folder from which `folder` was filled, according to the origin file in `folder`; None if
   * there is no valid origin file. The caller must check the result against the journal of the
   * returned folder. Someone with write access to only one of the two folders can forge the origin
   * file or the journal, but not both.
   */
  def origin(hadoopConf: Configuration, folder: TableFolder): Option[TableFolder] = {
    val file = originFile(folder)
    try Some(new String(FileSystems.readFully(file.getFileSystem(hadoopConf), file), UTF_8))
        .filterNot(name => TableFolder.leaves(name) || name.contains("/"))
        .filter(name => baseOf(name) == baseOf(folder.root.getName)).map(of(folder, _))
    catch { case _: FileNotFoundException => None }
  }

  private def baseOf(name: String): String = name match {
    case Switched(base) => base
    case other => other
  }
}
