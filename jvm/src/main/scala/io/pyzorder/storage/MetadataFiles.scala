package io.pyzorder.storage

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{FileAlreadyExistsException, Files, LinkOption, NoSuchFileException, Paths}
import java.nio.file.{Path => LocalPath}
import java.nio.file.attribute.{PosixFileAttributeView, PosixFileAttributes, PosixFilePermission}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import com.google.common.util.concurrent.Uninterruptibles
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Path}
import org.apache.hadoop.fs.permission.{FsAction, FsPermission}
import org.slf4j.LoggerFactory

import io.pyzorder.common.ZOrderErrors

/**
 * Creates `_zorder` and the folders below it. Each folder and file gets the permissions, group and
 * owner of its parent folder, and `_zorder` itself gets those of the table's folder. The index and
 * the journal must be accessible to exactly the users who can access the table, regardless of the
 * writer's umask. Nothing needs to be set on stores without permissions.
 */
object MetadataFiles {

  private val log = LoggerFactory.getLogger(getClass)

  /** How long, in milliseconds, a folder must remain unchanged to be considered unused. */
  private val MomentMillis = 500L
  private val Moments = 4

  /**
   * Creates a `_zorder` folder, or a folder below `_zorder` together with any missing parents up to
   * `_zorder`. The folder that contains `_zorder` is never created, because after a table has been
   * dropped or renamed, a new folder in its place would prevent another table from being created
   * there. Throws ZORDER_NOT_A_FOLDER if a file has the name of one of the folders.
   */
  def makeFolder(hadoopConf: Configuration, folder: Path): Unit = {
    val fs = folder.getFileSystem(hadoopConf)
    if (Links.inOwn(folder)) throw ZOrderErrors.linked(folder.toString)
    if (!existsAsFolder(fs, folder)) {
      if (folder.getName == TableFolder.Name) {
        if (!FileSystems.exists(fs, folder.getParent)) {
          throw new FileNotFoundException(s"$folder cannot be created: its parent no longer exists")
        }
      } else {
        makeFolder(hadoopConf, folder.getParent)
      }
      if (make(fs, hadoopConf, folder)) share(hadoopConf, folder)
    }
  }

  /** Whether the folder exists. Throws ZORDER_NOT_A_FOLDER if something else has its name. */
  def existsAsFolder(fs: FileSystem, folder: Path): Boolean = {
    val found = FileSystems.status(fs, folder)
    if (found.exists(!_.isDirectory)) throw ZOrderErrors.notAFolder(folder.toString)
    found.isDefined
  }

  /** Deletes one of pyzorder's own files or folders, unless it is reached through a link. */
  def delete(hadoopConf: Configuration, path: Path): Unit =
    if (!Links.above(path)) path.getFileSystem(hadoopConf).delete(path, true)

  /**
   * Deletes a folder that is empty and is at or below `_zorder`. Then deletes its parents, up to
   * `_zorder`, as long as they are empty. This cleans up after a table that no longer exists. The
   * folder that contains `_zorder` is kept, because another process may have just created it for a
   * new table.
   */
  def removeEmpty(hadoopConf: Configuration, folder: Path): Unit = if (!Links.above(folder)) {
    val fs = folder.getFileSystem(hadoopConf)
    try fs.delete(folder, false)
    catch { case _: IOException => () } // not empty
    if (folder.getName != TableFolder.Name && !FileSystems.exists(fs, folder)) {
      removeEmpty(hadoopConf, folder.getParent)
    }
  }

  /**
   * Deletes an empty folder once it has remained unchanged for `MomentMillis` and is therefore
   * probably not in use. Gives up after `Moments` attempts.
   */
  def removeUnused(hadoopConf: Configuration, folder: Path): Unit = {
    val fs = folder.getFileSystem(hadoopConf)
    def changed: Option[Long] = FileSystems.status(fs, folder).map(_.getModificationTime)
    def isQuiet: Boolean = {
      val before = changed
      Uninterruptibles.sleepUninterruptibly(MomentMillis, TimeUnit.MILLISECONDS)
      before.nonEmpty && changed == before
    }
    if (Iterator.continually(isQuiet).take(Moments).contains(true)) fs.delete(folder, false)
  }

  /** Gives a new file or folder the permissions, group and owner of its parent, if possible. */
  def share(hadoopConf: Configuration, made: Path): Unit =
    share(hadoopConf, made, made.getParent)

  /**
   * Gives `made` the permissions, group and owner of `like`, a folder on the same store, if
   * possible.
   */
  def share(hadoopConf: Configuration, made: Path, like: Path): Unit =
    try {
      val fs = made.getFileSystem(hadoopConf)
      fs.getUri.getScheme match {
        case "file" =>
          shareLocal(Paths.get(made.toUri.getPath), Paths.get(like.toUri.getPath))
        case "s3a" => ()
        case _ => shareRemote(fs, made, like)
      }
    } catch {
      case failure @ (_: IOException | _: UnsupportedOperationException) =>
        log.info(
          s"The permissions, group and owner of $made could not be set: ${failure.getMessage}")
    }

  /** Creates a folder. Returns false if another process created it first. */
  private def make(fs: FileSystem, hadoopConf: Configuration, folder: Path): Boolean =
    fs.getUri.getScheme match {
      case "file" =>
        try {
          Files.createDirectory(Paths.get(folder.toUri.getPath))
          true
        } catch {
          case _: FileAlreadyExistsException => false
          case gone: NoSuchFileException => throw new FileNotFoundException(gone.getMessage)
        }
      case "s3a" => fs.mkdirs(folder)
      case _ =>
        try {
          FileContext.getFileContext(folder.toUri, hadoopConf)
            .mkdir(folder, FsPermission.getDirDefault, false)
          true
        } catch {
          case _: org.apache.hadoop.fs.FileAlreadyExistsException => false
        }
    }

  private def shareLocal(path: LocalPath, like: LocalPath): Unit = {
    def view(path: LocalPath, options: LinkOption*) =
      Files.getFileAttributeView(path, classOf[PosixFileAttributeView], options: _*)
    val around: PosixFileAttributes = view(like).readAttributes()
    // Another user could replace what was made by a link to a file outside the table's folder.
    val made = view(path, LinkOption.NOFOLLOW_LINKS)
    val own: PosixFileAttributes = made.readAttributes()
    val wanted =
      if (own.isDirectory) around.permissions.asScala.toSet
      else around.permissions.asScala.toSet.filterNot(_.name.endsWith("_EXECUTE"))
    // Revoke permissions before changing the group, and grant permissions afterwards. Neither group
    // then ever has more access than it should.
    if (wanted != own.permissions.asScala.toSet) {
      made.setPermissions(
        own.permissions.asScala.filter(wanted).asJava: java.util.Set[PosixFilePermission])
    }
    if (own.group != around.group) made.setGroup(around.group)
    if (wanted != own.permissions.asScala.toSet) made.setPermissions(wanted.asJava)
    if (own.owner != around.owner) made.setOwner(around.owner)
  }

  private def shareRemote(fs: FileSystem, made: Path, like: Path): Unit = {
    val (around, own) = (fs.getFileStatus(like), fs.getFileStatus(made))
    def both(a: FsPermission, b: FsPermission): FsPermission = new FsPermission(
      a.getUserAction.and(b.getUserAction), a.getGroupAction.and(b.getGroupAction),
      a.getOtherAction.and(b.getOtherAction))
    val data = new FsPermission(FsAction.READ_WRITE, FsAction.READ_WRITE, FsAction.READ_WRITE)
    val wanted = if (own.isDirectory) around.getPermission else both(around.getPermission, data)
    var now = own.getPermission
    if (own.getGroup != around.getGroup) {
      // Revoke permissions before changing the group, for the reason given in shareLocal.
      val kept = both(now, wanted)
      if (now != kept) fs.setPermission(made, kept)
      now = kept
      fs.setOwner(made, null, around.getGroup)
    }
    if (now != wanted) fs.setPermission(made, wanted)
    if (own.getOwner != around.getOwner) fs.setOwner(made, around.getOwner, null)
  }
}
