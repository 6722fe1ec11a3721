package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.ZOrderErrors

/** The random id of this life of a table: what overwrites the table takes it away. */
object Incarnation {

  /** The id; None: the table has none, or was overwritten since it had one. */
  def read(hadoopConf: Configuration, folder: TableFolder): Option[String] =
    try {
      val fs = folder.incarnation.getFileSystem(hadoopConf)
      Some(new String(FileSystems.readFully(fs, folder.incarnation), UTF_8).trim)
    } catch {
      case _: FileNotFoundException => None
    }

  /** The id, made when there is none. */
  def readOrCreate(hadoopConf: Configuration, folder: TableFolder): String =
    read(hadoopConf, folder).getOrElse {
      MetadataFiles.makeFolder(hadoopConf, folder.zorder)
      val made = UUID.randomUUID().toString
      if (CreateIfAbsent.of(hadoopConf, folder.incarnation)
          .create(folder.incarnation, made.getBytes(UTF_8))) made
      else {
        val fs = folder.incarnation.getFileSystem(hadoopConf)
        if (FileSystems.status(fs, folder.incarnation).exists(_.isDirectory)) {
          throw ZOrderErrors.conflict(
            s"somebody has put a folder in the place of ${folder.incarnation}, a file")
        }
        readOrCreate(hadoopConf, folder)
      }
    }
}
