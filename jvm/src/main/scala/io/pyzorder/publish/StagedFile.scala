package io.pyzorder.publish

import org.apache.hadoop.fs.Path

import io.pyzorder.storage.FileRef

/**
 * A new data file that was written for a run and is not yet part of the table.
 *
 * @param stagedPath its current path, Writer.stagedPath(path)
 * @param path       the name that it will get, in the form of FileRef.path. No other file may ever
 *                   have had this name
 * @param size       its size in bytes
 * @param numRecords the number of rows
 */
final case class StagedFile(stagedPath: Path, path: String, size: Long, numRecords: Long) {

  /** The folder to which the file will be moved, in the form of FileRef.folder. */
  def folder: String = FileRef(path, size, 0L).folder
}
