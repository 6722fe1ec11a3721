package io.pyzorder.publish.relocate

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException

import io.pyzorder.storage.{CreateIfAbsent, FileSystems, MetadataFiles, TableFolder}

/**
 * The file `_zorder/_left-<run>` in a partition's old folder. A run creates it if the old folder is
 * outside the table's folder. The file contains a SHA-256 hash of the path of the table's folder.
 * The catalog records a partition's previous location, but the folder may have been deleted since,
 * and another user may have created a folder with the same name. Such a folder has no mark: a run
 * creates the mark while the catalog still names the folder, and someone who can write only to the
 * table's folder cannot create it. VACUUM deletes the mark together with the partition's old files.
 */
private[relocate] object LeftMark {

  private def path(folder: Path, run: String): Path =
    new Path(folder, s"${TableFolder.Name}/_left-$run")

  def put(hadoopConf: Configuration, folder: Path, table: TableFolder, run: Long): Unit = {
    val mark = path(folder, run.toString)
    MetadataFiles.makeFolder(hadoopConf, mark.getParent)
    CreateIfAbsent.of(hadoopConf, mark).create(mark, digest(table.root))
  }

  def isIn(hadoopConf: Configuration, folder: Path, table: Path, run: String): Boolean =
    run.nonEmpty && run.forall(_.isDigit) && {
      try {
        val found = FileSystems.readFully(folder.getFileSystem(hadoopConf), path(folder, run))
        java.util.Arrays.equals(found, digest(table))
      } catch { case _: FileNotFoundException | _: AccessControlException => false }
    }

  def remove(hadoopConf: Configuration, folder: Path, run: Long): Unit =
    MetadataFiles.delete(hadoopConf, path(folder, run.toString))

  private def digest(table: Path): Array[Byte] =
    MessageDigest.getInstance("SHA-256")
      .digest(TableFolder.canonical(table).toString.getBytes(UTF_8))
      .map(byte => f"$byte%02x").mkString.getBytes(UTF_8)
}
