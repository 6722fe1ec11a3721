package io.pyzorder.index.model

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType

import io.pyzorder.storage.{FileRef, TableFolder}

/**
 * A table's data files and everything needed to read them.
 *
 * @param root            the table's folder
 * @param format          "parquet" or "orc"
 * @param dataSchema      the columns that Spark reads from the files, including their metadata
 * @param partitionSchema the partition columns, whose values Spark does not read from the files
 * @param options         the relation's read options
 */
final case class DataFiles(
    root: Path,
    format: String,
    dataSchema: StructType,
    partitionSchema: StructType,
    options: Map[String, String],
    files: IndexedSeq[FileRef]) {

  @transient private lazy val folder = new TableFolder(root)

  /**
   * The full path of a file. It is below the root unless the file's partition has its own location.
   */
  def locate(file: FileRef): Path = folder.resolve(file.path)

  /** Whether this top-level column is read from the files. */
  def isFromFiles(column: String): Boolean =
    !partitionSchema.fieldNames.exists(_.equalsIgnoreCase(column))
}
