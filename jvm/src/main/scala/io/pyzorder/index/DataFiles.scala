package io.pyzorder.index

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.StructType

import io.pyzorder.publish.FileRef

/**
 * Data files of a table, and how they are read.
 *
 * @param root            the table's folder
 * @param format          "parquet" or "orc"
 * @param dataSchema      the columns Spark reads from the files, with their metadata
 * @param partitionSchema the columns whose values Spark takes from the folders instead
 * @param options         the relation's read options
 */
final case class DataFiles(
    root: Path,
    format: String,
    dataSchema: StructType,
    partitionSchema: StructType,
    options: Map[String, String],
    files: Seq[FileRef]) {

  /** Where a file lies: below the root, or, of a partition with its own location, elsewhere. */
  def locate(file: FileRef): Path = DataFiles.locate(root, file.path)
}

object DataFiles {

  /** The path of a file that `relative` names; a name with scheme or leading "/" stands by itself. */
  def locate(root: Path, relative: String): Path =
    if (relative.startsWith("/") || relative.matches("[A-Za-z][A-Za-z0-9+.-]*:/.*")) {
      new Path(relative)
    } else {
      new Path(root.toString.stripSuffix("/") + "/" + relative)
    }
}
