package io.pyzorder.publish

import org.apache.hadoop.fs.Path

/**
 * Every name pyzorder uses inside a table's folder. Each folder and file name below `_zorder` begins
 * with "_" and none ends in .parquet or .orc, so that no engine and no glob takes them for data.
 *
 * @param root the table's folder, qualified with scheme and authority
 */
final class TableFolder(val root: Path) {

  val zorder: Path = new Path(root, TableFolder.Name)

  val journal: Path = new Path(zorder, "_journal")

  val index: Path = new Path(zorder, "_index")

  /** The file with the random id of this life of the table; an overwrite of the table ends it. */
  val incarnation: Path = new Path(zorder, "_incarnation")

  /** Where the OPTIMIZE of number `run` writes its new files before they are published. */
  def staging(run: Long): Path = new Path(zorder, s"_staging/_$run")

  /** Where the OPTIMIZE of number `run` keeps the files it replaced. */
  def retired(run: Long): Path = new Path(zorder, s"_retired/_$run")

  /** `day=1/part-0.parquet` retired by run 7: `_zorder/_retired/_7/_day=1/_part-0.parquet.retired`. */
  def retiredPath(run: Long, relative: String): Path =
    hidden(retired(run), relative, ".retired")

  /** `day=1/part-0.parquet` staged by run 7: `_zorder/_staging/_7/_day=1/_part-0.parquet.staged`. */
  def stagedPath(run: Long, relative: String): Path =
    hidden(staging(run), relative, ".staged")

  private def hidden(folder: Path, relative: String, suffix: String): Path =
    new Path(folder.toString + "/" + relative.split('/').map("_" + _).mkString("/") + suffix)

  override def equals(other: Any): Boolean = other match {
    case that: TableFolder => that.root == root
    case _ => false
  }

  override def hashCode: Int = root.hashCode

  override def toString: String = root.toString
}

object TableFolder {

  /** The folder of pyzorder's own files in a table's folder. */
  val Name: String = "_zorder"
}
