package io.pyzorder.index.model

import io.pyzorder.storage.FileRef

/**
 * The row for one data file in the index table.
 *
 * @param path             the path relative to the table's folder; its parts are joined by "/" and
 *                         not URL-encoded
 * @param size             the size in bytes; together with `modificationTime`, it determines
 *                         whether the entry is valid
 * @param modificationTime the modification time in milliseconds since the epoch, as reported by the
 *                         file system
 * @param numRecords       the number of rows in the file
 * @param clusteredBy      the labels, in order, of the columns by which the file was clustered,
 *                         either by the OPTIMIZE that wrote it or by a write to a folder that
 *                         contained no rows; empty if it was not clustered
 * @param readSettings     the settings under which the statistics were collected
 *                         (ReadSettings.fingerprint)
 * @param statistics       the columns' statistics, keyed by IndexedColumn.name; the statistics of
 *                         columns that are not in this map are unknown
 * @param sketches         the sketches of the file's columns
 */
final case class FileEntry(
    path: String,
    size: Long,
    modificationTime: Long,
    numRecords: Long,
    clusteredBy: Seq[String],
    readSettings: String,
    statistics: Map[String, ColumnStatistics],
    sketches: FileSketches = FileSketches.Missing) {

  /** The file that the entry describes. */
  def file: FileRef = FileRef(path, size, modificationTime)
}
