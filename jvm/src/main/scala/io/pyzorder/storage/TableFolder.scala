package io.pyzorder.storage

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import io.pyzorder.common.ZOrderErrors

/**
 * Every name pyzorder uses inside a table's folder. Each folder and file name below `_zorder`
 * begins with "_" and none ends in .parquet or .orc, so that no engine and no glob takes them for
 * data.
 *
 * A data file is named by its path relative to the table's folder, parts joined by "/"; a file of a
 * partition that lies elsewhere is named by its whole path, scheme included, and what belongs to it
 * lies in a `_zorder` of its own folder, so that every rename stays within one folder tree.
 *
 * Names come out of the table's own records, which whoever may write into its folder can forge.
 * `holds` says which of them count: a whole path only where the catalog says, not the record, that
 * a partition of the table lies or lay there.
 *
 * @param root    the table's folder, qualified with scheme and authority
 * @param catalog the folders of the table's partitions by the catalog, asked when a whole path is
 *                met; None: the table was named by its path, and nothing outside of it is known
 */
final class TableFolder(val root: Path, catalog: Option[() => Set[Path]]) {

  def this(root: Path) = this(root, None)

  private lazy val places: Set[Path] = catalog.fold(Set.empty[Path])(_())

  /** Whether the catalog was asked for the table, so that it can say where partitions lie. */
  def isInCatalog: Boolean = catalog.isDefined

  /** The same folder, whose partitions may lie in these places too. */
  def trusting(more: Set[Path]): TableFolder = new TableFolder(root, Some(() => places ++ more))

  /**
   * Whether a folder, named as in FileRef.folder, is one of the table's: in its own, or at or below
   * a place that the catalog names, without a link on the way.
   */
  def holds(folder: String): Boolean =
    if (folder.isEmpty) true
    else if (TableFolder.leaves(folder)) false
    else {
      val path = resolve(folder)
      val isNamed = !TableFolder.isWhole(folder) ||
        !TableFolder.isAtOrBelow(path, root) && above(path).exists(places)
      isNamed && !isLinked(folder)
    }

  /** Whether a link stands between what is the table's by the catalog and a folder of it. */
  def isLinked(folder: String): Boolean = {
    val path = resolve(folder)
    homes(path).exists(Links.between(_, path))
  }

  /** Whether a file, or a folder of the table's on the way to it, is a link: see Links.strange. */
  def isStrange(file: Path): Boolean = (homes(file) :+ file).exists(Links.strange(_, file))

  /**
   * Folders that no writer of the table's can have put a link in the place of: its own, those of
   * partitions, and one beside it that holds partitions, where OPTIMIZE has switched them.
   */
  private def homes(path: Path): Seq[Path] =
    if (TableFolder.isAtOrBelow(path, root)) Seq(root)
    else above(path).filter(one => places(one) || SiblingFolder.isBeside(this, one)).toSeq

  private def above(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)

  val zorder: Path = new Path(root, TableFolder.Name)

  val journal: Path = new Path(zorder, "_journal")

  val index: Path = new Path(zorder, "_index")

  /** The file with the random id of this life of the table; an overwrite of the table ends it. */
  val incarnation: Path = new Path(zorder, "_incarnation")

  /** Where the OPTIMIZE of number `run` writes its new files before they are published. */
  def staging(run: Long): Path = new Path(zorder, s"_staging/_$run")

  /** Where the OPTIMIZE of number `run` keeps the files it replaced. */
  def retired(run: Long): Path = new Path(zorder, s"_retired/_$run")

  /**
   * `day=1/part-0.parquet` retired by run 7: `_zorder/_retired/_7/_day=1/_part-0.parquet.retired`.
   */
  def retiredPath(run: Long, relative: String): Path =
    hidden(s"_retired/_$run", relative, ".retired")

  /**
   * `day=1/part-0.parquet` staged by run 7: `_zorder/_staging/_7/_day=1/_part-0.parquet.staged`.
   */
  def stagedPath(run: Long, relative: String): Path =
    hidden(s"_staging/_$run", relative, ".staged")

  /** The data file (or folder) of that name; the empty name is the table's folder. */
  def resolve(relative: String): Path =
    if (relative.isEmpty) root
    else if (TableFolder.isWhole(relative)) new Path(relative)
    else TableFolder.below(root, relative)

  private val own = root.toUri

  private val prefix = own.getPath.stripSuffix("/") + "/"

  /** The name of a data file (or folder), given its qualified path: the inverse of `resolve`. */
  def relativize(path: Path): String = {
    val other = path.toUri
    val sameStore = own.getScheme == other.getScheme && own.getAuthority == other.getAuthority
    if (sameStore && other.getPath.startsWith(prefix)) other.getPath.substring(prefix.length)
    else if (path == root) ""
    else path.toString
  }

  private def hidden(place: String, relative: String, suffix: String): Path =
    if (TableFolder.isWhole(relative)) {
      val file = new Path(relative)
      val name = BoundedFileName.of("_", file.getName, suffix)
      TableFolder.below(file.getParent, s"${TableFolder.Name}/$place/$name")
    } else {
      val parts = relative.split('/')
      val below = parts.init.map(BoundedFileName.of("_", _, "")) :+
        BoundedFileName.of("_", parts.last, suffix)
      TableFolder.below(root, s"${TableFolder.Name}/$place/${below.mkString("/")}")
    }

  override def equals(other: Any): Boolean = other match {
    case that: TableFolder => that.root == root
    case _ => false
  }

  override def hashCode: Int = root.hashCode

  /** For messages. */
  override def toString: String = ZOrderErrors.withoutPassword(root.toString)
}

object TableFolder {

  /** The folder of pyzorder's own files in a table's folder. */
  val Name: String = "_zorder"

  private val Whole = "^[A-Za-z][A-Za-z0-9+.-]*:/".r

  /** Whether a data file's name is its whole path: it lies outside of the table's folder. */
  def isWhole(relative: String): Boolean = Whole.findFirstIn(relative).isDefined

  /**
   * Whether a name that is not a whole path is none of a file in the table's folder: it is empty,
   * begins at the root, or goes up and down by `.` and `..`; or a whole path that is spelled
   * otherwise than Hadoop spells it. `relativize` never gives such a name.
   */
  def leaves(relative: String): Boolean =
    relative.indexOf(0) >= 0 || (if (isWhole(relative)) !isCanonical(relative)
                                 else {
                                   val parts = "/" + relative + "/"
                                   parts.contains("//") || parts.contains("/./") || parts.contains(
                                     "/../")
                                 })

  private def isCanonical(whole: String): Boolean =
    try new Path(whole).toString == whole &&
        !(new Path(whole).toUri.getPath + "/").contains("/../")
    catch { case NonFatal(_) => false }

  /** Whether a path is a folder, or lies in it or below; by names alone. */
  def isAtOrBelow(path: Path, folder: Path): Boolean =
    path == folder || (path.toUri.getScheme == folder.toUri.getScheme &&
      path.toUri.getAuthority == folder.toUri.getAuthority &&
      path.toUri.getPath.startsWith(folder.toUri.getPath.stripSuffix("/") + "/"))

  /** `new Path(folder, relative)` that takes colons in `relative` as they are. */
  private[storage] def below(folder: Path, relative: String): Path = {
    val uri = folder.toUri
    new Path(uri.getScheme, uri.getAuthority, uri.getPath.stripSuffix("/") + "/" + relative)
  }
}
