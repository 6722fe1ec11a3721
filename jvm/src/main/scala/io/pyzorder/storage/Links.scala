package io.pyzorder.storage

import java.nio.file.{Files, InvalidPathException, LinkOption, Paths}

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

/**
 * Checks for symbolic links, which exist only on local disks. Anyone with write access to a table's
 * folder can create a link to any path, and a command that runs with more privileges must not
 * follow it. pyzorder does not create symbolic links, so a link below `_zorder` was created by
 * another program.
 */
private[pyzorder] object Links {

  /** Whether `_zorder`, or anything below it down to and including `path`, is a link. */
  def inOwn(path: Path): Boolean = isLocal(path) && {
    val parts = partsOf(path)
    val own = parts.indexOf(TableFolder.Name)
    own >= 0 && anyLink(parts, own + 1)
  }

  /**
   * Like `inOwn`, but does not check `path` itself, because deleting or moving a link itself is
   * harmless.
   */
  def above(path: Path): Boolean = path.getParent != null && inOwn(path.getParent)

  /**
   * Whether `folder`, or a folder between `root` and `folder`, is a link. `root` itself is not
   * checked.
   */
  def between(root: Path, folder: Path): Boolean =
    isLocal(root) && root != folder && anyLink(partsOf(folder), partsOf(root).length + 1)

  /** The path without links; the path itself if it does not exist or is not on a local disk. */
  def target(path: Path): Path =
    if (!isLocal(path)) path
    else
      try new Path(Paths.get(path.toUri.getPath).toRealPath().toUri)
      catch { case NonFatal(_) => path }

  /** Whether the path itself is a link. */
  def isOne(path: Path): Boolean = isLocal(path) && isLink(path.toUri.getPath)

  /**
   * Whether `file`, or a folder on the path from `root` to `file`, is a link whose owner differs
   * from the owner of its target. Anyone with write access to the table's folder can create a link
   * to a file that they are not allowed to read. If a user who can read the file runs a command,
   * the command must not copy the file, its minima or its maxima into the table's folder. If `file`
   * is not below `root`, only `file` itself is checked.
   */
  def strange(root: Path, file: Path): Boolean = isLocal(root) && {
    val path = file.toUri.getPath
    val above = root.toUri.getPath.stripSuffix("/") + "/"
    val end = if (path.startsWith(above)) path.indexOf('/', above.length) else -1
    Iterator.iterate(end)(at => path.indexOf('/', at + 1)).takeWhile(_ >= 0).map(path.take)
      .++(Iterator(path)).exists(one => isLink(one) && !hasOwnerOfTarget(one))
  }

  private def hasOwnerOfTarget(link: String): Boolean =
    try {
      val path = Paths.get(link)
      Files.getOwner(path, LinkOption.NOFOLLOW_LINKS) == Files.getOwner(path)
    } catch { case NonFatal(_) => false }

  private def anyLink(parts: Seq[String], from: Int): Boolean =
    (from to parts.length).exists(count => isLink(parts.take(count).mkString("/", "/", "")))

  /**
   * Whether the path is a link. Also true for a name with characters that the JVM's encoding cannot
   * represent, because Hadoop replaces them with `?`, and the resulting path may be a link.
   */
  private def isLink(path: String): Boolean =
    try Files.isSymbolicLink(Paths.get(path))
    catch { case _: InvalidPathException => true }

  private def partsOf(path: Path): Seq[String] =
    path.toUri.getPath.split('/').filter(_.nonEmpty).toSeq

  /** Whether Hadoop opens the path on the local disk. Hadoop ignores the case of a scheme. */
  def isLocal(path: Path): Boolean =
    path.toUri.getScheme == null || path.toUri.getScheme.equalsIgnoreCase("file")
}
