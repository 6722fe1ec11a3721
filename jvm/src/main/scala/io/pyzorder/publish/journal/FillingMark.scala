package io.pyzorder.publish.journal

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, TableFolder}

/**
 * `_zorder/_filling` in a folder that a run is filling: the SHA-256 of the run's record. The record
 * lies in the table's folder, where others may write; the mark lies where only the run has written.
 * So a record that has no such mark in the folder it names is not the one of a run that made this
 * folder: nothing is deleted, filled or switched by it. The mark goes once the catalog names the
 * folder: from then on no record can make anybody delete it.
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
