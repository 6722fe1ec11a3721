package io.pyzorder.publish.journal

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, TableFolder}

/**
 * The file `_zorder/_filling` in a folder that a run is filling. It contains a SHA-256 hash that
 * covers both the name of the table's folder and the run's record. The record is in the table's
 * folder, to which others may write. The mark is in a folder to which only the run has written. If
 * a record names a folder without a matching mark, the run that created the folder did not write
 * that record into this table's journal. Such a record never causes anything to be deleted, filled
 * or switched. The mark is removed once the catalog names the folder. After that, no record can
 * cause the folder's deletion.
 *
 * Because the mark covers the name of the table's folder, it does not match a copy of the record in
 * another table's journal. The name alone is enough, because a run fills only siblings of the
 * table's folder, and no other sibling has the same name.
 */
private[publish] object FillingMark {

  def path(folder: Path): Path = new Path(folder, s"${TableFolder.Name}/_filling")

  /**
   * @param folder the folder to mark
   * @param table  the table's folder, whose journal contains the record
   */
  def put(
      hadoopConf: Configuration,
      folder: Path,
      table: TableFolder,
      record: Array[Byte]): Unit = {
    MetadataFiles.makeFolder(hadoopConf, path(folder).getParent)
    CreateIfAbsent.of(hadoopConf, path(folder)).create(path(folder), digest(table, record))
  }

  def isIn(
      hadoopConf: Configuration,
      folder: Path,
      table: TableFolder,
      record: Array[Byte]): Boolean =
    try {
      val found = FileSystems.readFully(folder.getFileSystem(hadoopConf), path(folder))
      java.util.Arrays.equals(found, digest(table, record))
    } catch { case _: FileNotFoundException => false }

  def remove(hadoopConf: Configuration, folder: Path): Unit =
    folder.getFileSystem(hadoopConf).delete(path(folder), false)

  private def digest(table: TableFolder, record: Array[Byte]): Array[Byte] = {
    val sha = MessageDigest.getInstance("SHA-256")
    sha.update(s"${table.root.getName}\n".getBytes(UTF_8))
    sha.digest(record).map(byte => f"$byte%02x").mkString.getBytes(UTF_8)
  }
}
