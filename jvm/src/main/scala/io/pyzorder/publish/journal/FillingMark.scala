package io.pyzorder.publish.journal

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, TableFolder}

/**
 * The file `_zorder/_filling` in a folder that a run is filling, which contains the SHA-256 of the
 * run's record. The record is in the table's folder, where others may write, whereas the mark is in
 * a folder where only the run has written. If a record names a folder without a matching mark, the
 * run that created the folder did not write that record. Such a record never causes anything to be
 * deleted, filled or switched. The mark is removed once the catalog names the folder. After that,
 * no record can cause the folder's deletion.
 */
private[publish] object FillingMark {

  def path(folder: Path): Path = new Path(folder, s"${TableFolder.Name}/_filling")

  def put(hadoopConf: Configuration, folder: Path, record: Array[Byte]): Unit = {
    MetadataFiles.makeFolder(hadoopConf, path(folder).getParent)
    CreateIfAbsent.of(hadoopConf, path(folder)).create(path(folder), digest(record))
  }

  def isIn(hadoopConf: Configuration, folder: Path, record: Array[Byte]): Boolean =
    try {
      val found = FileSystems.readFully(folder.getFileSystem(hadoopConf), path(folder))
      java.util.Arrays.equals(found, digest(record))
    } catch { case _: FileNotFoundException => false }

  def remove(hadoopConf: Configuration, folder: Path): Unit =
    folder.getFileSystem(hadoopConf).delete(path(folder), false)

  private def digest(record: Array[Byte]): Array[Byte] =
    MessageDigest.getInstance("SHA-256").digest(record).map(byte => f"$byte%02x").mkString
      .getBytes(UTF_8)
}
