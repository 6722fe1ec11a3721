package io.pyzorder.storage

import java.net.URI
import java.util.Locale

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import io.pyzorder.common.ZOrderErrors

/**
 * Defines every name that pyzorder uses inside a table's folder. Each folder and file name below
 * `_zorder` begins with "_", and none ends in .parquet or .orc, so no engine mistakes these files
 * for data, and no glob such as `*.parquet` matches them.
 *
 * A data file is named by its path relative to the table's folder, with "/" as the separator. A
 * file in a partition outside the table's folder is named by its fully qualified path, including
 * the scheme. pyzorder's own files for such a partition are in a `_zorder` folder inside the
 * partition's folder, so no file is ever moved out of the partition's folder.
 *
 * Names are read from the table's own records, which anyone with write access to the table's folder
 * can forge. `holds` decides which names are trusted. A fully qualified path is trusted only if it
 * is at or below a partition location that the catalog, not the record, names. A previous location
 * of a partition counts only if it still contains the mark of the run that replaced it.
 *
 * @param location the table's folder, qualified with scheme and authority
 * @param catalog  the locations of the table's partitions, looked up in the catalog when the first
 *                 fully qualified path is checked; None if the table was named by its path, in
 *                 which case no partitions outside its folder are known
 */
final class TableFolder(location: Path, catalog: Option[() => Set[Path]]) {

  def this(location: Path) = this(location, None)

  val root: Path = TableFolder.canonical(location)

  private lazy val places: Set[Path] = catalog.fold(Set.empty[Path])(_())

  /**
   * The partition locations, in the form of the names that `relativize` returns. They are compared
   * as strings, because Hadoop's comparison of paths ignores the case of the authority, whereas
   * `relativize` and `isAtOrBelow` do not.
   */
  private lazy val placeNames: Set[String] = places.map(TableFolder.canonical(_).toString)

  /**
   * Whether the table comes from a catalog, which then determines the locations of its partitions.
   */
  def isInCatalog: Boolean = catalog.isDefined

  /** A copy of this object that also trusts these partition locations. */
  def trusting(more: Set[Path]): TableFolder = new TableFolder(root, Some(() => places ++ more))

  /**
   * Whether a folder belongs to the table. `folder` has the form of FileRef.folder. The folder must
   * be inside the table's folder, or at or below a partition location from the catalog, and no
   * folder on the path to it may be a link.
   */
  def holds(folder: String): Boolean =
    trusts(folder) && (folder.isEmpty || !isLinked(folder))

  /** Like `holds`, but the path to the folder may contain links. */
  def trusts(folder: String): Boolean =
    folder.isEmpty || !TableFolder.leaves(folder) && {
      val path = resolve(folder)
      !TableFolder.isWhole(folder) ||
      !TableFolder.isAtOrBelow(path, root) && above(path).exists(isPlace)
    }

  /** Whether a folder, given by its fully qualified path, is on the same store as the table. */
  def isOnSameStore(folder: String): Boolean = {
    val (own, other) = (root.toUri, new Path(folder).toUri)
    own.getScheme == other.getScheme && own.getAuthority == other.getAuthority
  }

  /**
   * Whether `folder` is a link, or is reached through a link below the table's folder or below a
   * partition location.
   */
  def isLinked(folder: String): Boolean = {
    val path = resolve(folder)
    homes(path).exists(Links.between(_, path))
  }

  /**
   * Whether a file, or a folder of the table on the path to it, is a link for which Links.strange
   * returns true.
   */
  def isStrange(file: Path): Boolean = homes(file) match {
    case Nil => Links.strange(file, file)
    case above => above.exists(Links.strange(_, file))
  }

  /**
   * The ancestors of `path` that someone with write access to the table cannot replace with a link.
   * These are the table's folder, the locations of its partitions, and any sibling folders to which
   * OPTIMIZE has switched partitions.
   */
  private def homes(path: Path): Seq[Path] =
    if (TableFolder.isAtOrBelow(path, root)) Seq(root)
    else above(path).filter(one => isPlace(one) || SiblingFolder.isBeside(this, one)).toSeq

  private def isPlace(path: Path): Boolean = placeNames(path.toString)

  private def above(path: Path): Iterator[Path] =
    Iterator.iterate(path)(_.getParent).takeWhile(_ != null)

  val zorder: Path = new Path(root, TableFolder.Name)

  val journal: Path = new Path(zorder, "_journal")

  val index: Path = new Path(zorder, "_index")

  val workload: Path = new Path(zorder, "_workload")

  /**
   * The file with the id of the table's incarnation. It is deleted when the table is overwritten.
   */
  val incarnation: Path = new Path(zorder, "_incarnation")

  /**
   * The log that says which files in the folder are valid, if a streaming query of Spark writes to
   * the folder.
   */
  val streamLog: Path = new Path(root, "_spark_metadata")

  /** The folder in which run number `run` writes its new files before they are published. */
  def staging(run: Long): Path = new Path(zorder, s"_staging/_$run")

  /** The folder in which run number `run` keeps the files that it replaced. */
  def retired(run: Long): Path = new Path(zorder, s"_retired/_$run")

  /**
   * The path to which run number `run` moves a data file that it replaces. For
   * `day=1/part-0.parquet` and run 7, it is `_zorder/_retired/_7/_day=1/_part-0.parquet.retired`.
   */
  def retiredPath(run: Long, relative: String): Path =
    hidden(s"_retired/_$run", relative, ".retired")

  /**
   * The path at which run number `run` writes a data file before the file is published. For
   * `day=1/part-0.parquet` and run 7, it is `_zorder/_staging/_7/_day=1/_part-0.parquet.staged`.
   */
  def stagedPath(run: Long, relative: String): Path =
    hidden(s"_staging/_$run", relative, ".staged")

  /**
   * The path of the data file (or folder) with this name. An empty name stands for the table's
   * folder.
   */
  def resolve(relative: String): Path =
    if (relative.isEmpty) root
    else if (TableFolder.isWhole(relative)) new Path(relative)
    else TableFolder.below(root, relative)

  private val own = root.toUri

  private val prefix = own.getPath.stripSuffix("/") + "/"

  /**
   * The name of the data file (or folder) at a qualified path; the inverse of `resolve`. A file in
   * a folder whose name looks like a URI scheme, such as `file:`, is named by its fully qualified
   * path, because its relative name would look like a fully qualified path to another file.
   */
  def relativize(file: Path): String = {
    val path = TableFolder.canonical(file)
    val other = path.toUri
    val sameStore = own.getScheme == other.getScheme && own.getAuthority == other.getAuthority
    val below =
      if (sameStore && other.getPath.startsWith(prefix)) other.getPath.substring(prefix.length)
      else if (path == root) ""
      else path.toString
    if (TableFolder.isWhole(below)) path.toString else below
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

  /** The folder as it is shown in messages, with any credentials masked. */
  override def toString: String = ZOrderErrors.withoutPassword(root.toString)
}

object TableFolder {

  /**
   * A path and its ancestors, up to and including the first folder whose name does not have the
   * form `name=value`.
   */
  def upwards(path: Path): List[Path] =
    if (path.getName.contains("=") && path.getParent != null) path :: upwards(path.getParent)
    else List(path)

  /** The name of the subfolder of a table's folder that contains pyzorder's own files. */
  val Name: String = "_zorder"

  private val Whole = "^[A-Za-z][A-Za-z0-9+.-]*:/".r

  /**
   * Whether a data file's name is a fully qualified path. Files outside the table's folder have
   * such names.
   */
  def isWhole(relative: String): Boolean =
    relative.contains(":/") && Whole.findFirstIn(relative).isDefined // almost no name has a colon

  /**
   * Whether a name might lead outside the table's folder. `relativize` never returns such a name
   * for a data file. There are three kinds: relative names that are empty, begin with a slash, or
   * have an empty, `.` or `..` part; fully qualified paths that are not in Hadoop's canonical form;
   * and names that contain a NUL character.
   */
  def leaves(relative: String): Boolean =
    !isOrdinary(relative) && (relative.indexOf(0) >= 0 || (
      if (isWhole(relative)) !isCanonical(relative)
      else {
        val parts = "/" + relative + "/"
        parts.contains("//") || parts.contains("/./") || parts.contains("/../")
      }))

  /**
   * A quick test, which is sufficient for almost all names. Returns true if the name has no NUL and
   * no colon, and none of its parts is empty or begins with a dot.
   */
  private def isOrdinary(relative: String): Boolean =
    !relative.isEmpty && relative.indexOf(0) < 0 && relative.indexOf(':') < 0 &&
      relative.charAt(0) != '.' && relative.charAt(0) != '/' &&
      (relative.indexOf('/') < 0 ||
        !relative.endsWith("/") && !relative.contains("//") && !relative.contains("/."))

  private def isCanonical(whole: String): Boolean =
    try {
      val path = new Path(whole)
      path.toString == whole && canonical(path).toString == whole &&
      !(path.toUri.getPath + "/").contains("/../")
    } catch { case NonFatal(_) => false }

  /** The path with its scheme in lower case, as file systems return it. */
  def canonical(path: Path): Path = {
    val uri = path.toUri
    if (uri.getScheme == null || !uri.getScheme.exists(_.isUpper)) path
    else new Path(uri.getScheme.toLowerCase(Locale.ROOT), uri.getAuthority, uri.getPath)
  }

  /**
   * Whether Spark's listings hide a file because of a name in its path. `relative` has the form of
   * FileRef.path.
   */
  def isHidden(relative: String): Boolean =
    if (isWhole(relative)) isHiddenName(relative.substring(relative.lastIndexOf('/') + 1))
    else relative.split('/').exists(isHiddenName)

  /**
   * Whether Spark's listings hide a file or folder with this name. A leading underscore does not
   * hide partition folders. Hadoop's shell appends `._COPYING_` to the names of files that it is
   * still copying.
   */
  def isHiddenName(name: String): Boolean =
    name.startsWith(".") || (name.startsWith("_") && !name.contains("=")) ||
      name.endsWith("._COPYING_")

  /**
   * Whether `path` is `folder` or is below it. Only the paths are compared; links are not resolved.
   */
  def isAtOrBelow(path: Path, folder: Path): Boolean =
    path == folder || {
      val (one, other) = (canonical(path).toUri, canonical(folder).toUri)
      one.getScheme == other.getScheme && one.getAuthority == other.getAuthority &&
      one.getPath.startsWith(other.getPath.stripSuffix("/") + "/")
    }

  /**
   * Like `new Path(folder, relative)`, but colons in `relative` have no special meaning. On a local
   * disk, the path's URI begins with `file:///`, as it does in Hadoop's listings. The expression
   * input_file_name() returns this URI.
   */
  private[storage] def below(folder: Path, relative: String): Path = {
    val uri = folder.toUri
    val isLocal = uri.getScheme == "file" && uri.getAuthority == null
    val authority = if (isLocal) "" else uri.getAuthority
    val path = uri.getPath.stripSuffix("/") + "/" + relative
    // Path's constructor for parts of a URI takes much longer, because it first looks for slashes
    // to remove.
    if (isOrdinary(relative)) new Path(new URI(uri.getScheme, authority, path, null, null))
    else new Path(uri.getScheme, authority, path)
  }
}
