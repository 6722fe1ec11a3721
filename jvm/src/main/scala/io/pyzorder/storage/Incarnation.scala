package io.pyzorder.storage

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.conf.Configuration

import io.pyzorder.common.ZOrderErrors

/**
 * The random id of a table's current incarnation. An incarnation ends when the table is
 * overwritten, which deletes the id.
 */
object Incarnation {

  private val Id = "[0-9A-Za-z_-]{1,64}"

  private val MaxBytes = 1024

  /**
   * The maximum number of times that creation is retried if the file exists but does not contain a
   * valid id.
   */
  private val MaxTries = 10

  /**
   * Whether a string can be an id. This must be checked because ids become parts of file names, and
   * anyone with write access to the table's folder can replace an id with a string such as
   * `x/../../sales/part-0.parquet`.
   */
  def isId(text: String): Boolean = text.matches(Id)

  /** The table's id; None if it has no valid id, for example after it has been overwritten. */
  def read(hadoopConf: Configuration, folder: TableFolder): Option[String] =
    try {
      val fs = folder.incarnation.getFileSystem(hadoopConf)
      Some(new String(FileSystems.readFully(fs, folder.incarnation, MaxBytes), UTF_8).trim)
        .filter(isId)
    } catch {
      case _: FileNotFoundException => None
    }

  /** Returns the table's id, and creates one if there is none. */
  def readOrCreate(hadoopConf: Configuration, folder: TableFolder): String =
    readOrCreate(hadoopConf, folder, MaxTries)

  private def readOrCreate(hadoopConf: Configuration, folder: TableFolder, tries: Int): String =
    read(hadoopConf, folder).getOrElse {
      MetadataFiles.makeFolder(hadoopConf, folder.zorder)
      val made = UUID.randomUUID().toString
      if (CreateIfAbsent.of(hadoopConf, folder.incarnation)
          .create(folder.incarnation, made.getBytes(UTF_8))) made
      else if (tries > 0) readOrCreate(hadoopConf, folder, tries - 1)
      else throw ZOrderErrors.damaged(folder.incarnation.toString, "it does not contain an id")
    }
}
