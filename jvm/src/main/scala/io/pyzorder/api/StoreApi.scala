package io.pyzorder.api

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.{CreateIfAbsent, FileSystems}

/** Probes the capabilities of a store. */
object StoreApi {

  /**
   * Tries twice to create a file at the path `text`, then deletes the file. Returns whether only
   * the first attempt succeeded. Throws ZORDER_PATH_NOT_FOUND or ZORDER_PATH_IS_FILE if the file
   * cannot be created because its parent does not exist or is a file.
   */
  def createsIfAbsent(session: shim.SparkSession, text: String): Boolean = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val path = new Path(text)
    val fs = path.getFileSystem(hadoopConf)
    val store = CreateIfAbsent.of(hadoopConf, path)
    try store.create(path, "first".getBytes) && !store.create(path, "second".getBytes)
    catch {
      case NonFatal(failure) =>
        val folder = path.getParent
        FileSystems.status(fs, folder) match { // not checked earlier, because S3 needs no folder
          case None =>
            throw ZOrderErrors.because(failure, ZOrderErrors.pathNotFound(folder.toString))
          case Some(status) if status.isFile =>
            throw ZOrderErrors.because(failure, ZOrderErrors.pathIsFile(folder.toString))
          case _ => throw failure
        }
    } finally fs.delete(path, false)
  }
}
