package io.pyzorder.index.model

/**
 * One data file's row of the index table.
 *
 * @param path             relative to the table's folder, parts joined by "/", not URL-encoded
 * @param size             bytes; together with `modificationTime` what makes the entry valid
 * @param modificationTime milliseconds since the epoch, as the file system tells it
 * @param numRecords       rows of the file
 * @param clusteredBy      names of the clustering columns of the OPTIMIZE that wrote the file, or
 *                         of the write that filled its folder, in order; empty: none
 * @param readSettings     the settings the statistics were read under (ReadSettings.fingerprint)
 * @param statistics       by IndexedColumn.name; a column that is missing is unknown
 */
final case class FileEntry(
    path: String,
    size: Long,
    modificationTime: Long,
    numRecords: Long,
    clusteredBy: Seq[String],
    readSettings: String,
    statistics: Map[String, ColumnStatistics])
