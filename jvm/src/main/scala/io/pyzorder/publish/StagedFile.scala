package io.pyzorder.publish

import org.apache.hadoop.fs.Path

import io.pyzorder.storage.FileRef

/**
 * A new data file that was written for a run and is not part of the table yet.
 *
 * @param stagedPath where it is: Writer.stagedPath(path)
 * @param path       the name it gets, as in FileRef; no file may ever have had it
 * @param size       bytes
 * @param numRecords rows
 */
final case class StagedFile(stagedPath: Path, path: String, size: Long, numRecords: Long) {

  /** As in FileRef. */
  def folder: String = FileRef(path, size, 0L).folder
}
