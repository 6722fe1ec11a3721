package io.pyzorder.storage

import java.nio.file.{Files, LinkOption, Paths}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

/**
 * Symbolic links, which only disks have. Whoever may write into a table's folder can make one that
 * leads anywhere; a command of somebody with wider rights must not go through it. pyzorder makes
 * none itself, so that one below `_zorder` is never its own.
 */
private[pyzorder] object Links {

  /** Whether a link stands at `_zorder` or below it on the way to `path`, or is `path` itself. */
  def inOwn(path: Path): Boolean = isLocal(path) && {
    val parts = partsOf(path)
    val own = parts.indexOf(TableFolder.Name)
    own >= 0 && anyLink(parts, own + 1)
  }

  /** The same of what holds `path`: to delete or move a link itself harms nobody. */
  def above(path: Path): Boolean = path.getParent != null && inOwn(path.getParent)

  /** Whether a link stands between a folder, exclusive, and one below it, inclusive. */
  def between(root: Path, folder: Path): Boolean =
    isLocal(root) && root != folder && anyLink(partsOf(folder), partsOf(root).length + 1)

  /** Whether the path itself is a link. */
  def isOne(path: Path): Boolean = isLocal(path) && isLink(path.toUri.getPath)

  /**
   * Whether a file, or a folder on the way to it from a table's, is a link of another owner than
   * what it leads to. Who may write into the table's folder can make a link to what only others
   * may read; a command of theirs must not copy that into the folder, nor its minima and maxima.
   */
  def strange(root: Path, file: Path): Boolean = isLocal(root) && {
    val (above, parts) = (partsOf(root), partsOf(file))
    val from = if (parts.startsWith(above)) above.length + 1 else parts.length
    (from to parts.length).exists { count =>
      val path = parts.take(count).mkString("/", "/", "")
      isLink(path) && !hasOwnerOfTarget(path)
    }
  }

  private def hasOwnerOfTarget(link: String): Boolean =
    try {
      val path = Paths.get(link)
      Files.getOwner(path, LinkOption.NOFOLLOW_LINKS) == Files.getOwner(path)
    } catch { case NonFatal(_) => false }

  private def anyLink(parts: Seq[String], from: Int): Boolean =
    (from to parts.length).exists(count => isLink(parts.take(count).mkString("/", "/", "")))

  /** A name that no disk can have is the name of nothing. */
  private def isLink(path: String): Boolean =
    try Files.isSymbolicLink(Paths.get(path))
    catch { case NonFatal(_) => false }

  private def partsOf(path: Path): Seq[String] =
    path.toUri.getPath.split('/').filter(_.nonEmpty).toSeq

  private def isLocal(path: Path): Boolean =
    path.toUri.getScheme == null || path.toUri.getScheme == "file"
}
