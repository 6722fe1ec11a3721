package io.pyzorder.publish.journal

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.{CREATE_NEW, WRITE}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import io.pyzorder.common.ZOrderErrors
import io.pyzorder.storage.{CreateIfAbsent, FileSystems, Links, MetadataFiles, ProcessId}
import io.pyzorder.storage.TableFolder
import io.pyzorder.storage.metadata.MetadataNames

/**
 * A writer's heartbeat. A daemon thread renews the file `_<n>.lease` at intervals of a quarter of
 * the lease's length. Other writers compare the file's modification time with the store's own
 * clock.
 */
private[publish] final class Lease(
    hadoopConf: Configuration,
    folder: TableFolder,
    run: Long,
    owner: String,
    length: Long) {

  @volatile private var renewed = System.nanoTime()
  @volatile private var ended = false
  private var shared = false

  private val thread = new Thread(() => keep(), s"zorder-lease-$run")
  thread.setDaemon(true)

  /** Registers the owner as alive for other writers in this process. Called before PREPARE. */
  def claim(): Unit = Lease.live.add(owner)

  /** Starts the heartbeat. Called after PREPARE. */
  def start(): Unit = thread.start()

  /**
   * True only if no other writer can have declared this writer dead. Becomes false if this process
   * is paused for a long time.
   */
  def held: Boolean = System.nanoTime() - renewed < length * 1000000L / 4 * 3

  /** Ends the lease, whether or not its heartbeat was started. */
  def end(): Unit = {
    val started = thread.isAlive
    ended = true
    Lease.live.remove(owner)
    thread.interrupt()
    thread.join(5000)
    if (started)
      try MetadataFiles.delete(hadoopConf, Lease.path(folder, run))
      catch { case NonFatal(_) => () }
  }

  private def keep(): Unit =
    while (!ended) {
      val now = System.nanoTime()
      try {
        // The heartbeat must not create folders; otherwise, it could recreate the `_zorder` of an
        // overwritten table. Object stores create folders implicitly, so the PREPARE record is
        // checked first.
        val fs = Lease.fileSystem(hadoopConf, folder)
        if (!FileSystems.exists(fs, MetadataNames.record(folder, run, "prepare"))) {
          throw new FileNotFoundException(s"$folder was overwritten")
        }
        if (Links.inOwn(Lease.path(folder, run)))
          throw new FileNotFoundException("it is a symbolic link")
        if (fs.getUri.getScheme == "file") renewLocal() else renew(fs)
        renewed = now
      } catch {
        case NonFatal(_) => () // the next attempt may succeed; if none does, `held` becomes false
      }
      try Thread.sleep(math.max(1L, length / 4))
      catch { case _: InterruptedException => ended = true }
    }

  /**
   * Replaces the lease file with a new one. The existing file is never written to, because it could
   * be a pipe, or a hard link to another user's file.
   */
  private def renewLocal(): Unit = {
    val lease = Paths.get(Lease.path(folder, run).toUri.getPath)
    val made = lease.resolveSibling(CreateIfAbsent.Temporary + UUID.randomUUID())
    try {
      Files.write(made, owner.getBytes(UTF_8), CREATE_NEW, WRITE)
      MetadataFiles.share(hadoopConf, new Path(made.toUri))
      Files.move(made, lease, ATOMIC_MOVE)
    } finally Files.deleteIfExists(made)
  }

  private def renew(fs: FileSystem): Unit = {
    val out = fs.createFile(Lease.path(folder, run)).overwrite(true).build()
    try out.write(owner.getBytes(UTF_8))
    finally out.close()
    if (!shared) MetadataFiles.share(hadoopConf, Lease.path(folder, run))
    shared = true
  }
}

private[publish] object Lease {

  /** The owners of all writers running in this process. */
  private val live = ConcurrentHashMap.newKeySet[String]()

  /** Whether the owner of the last run may still be running. */
  def isAlive(hadoopConf: Configuration, state: JournalState, defaultLength: Long): Boolean =
    state.prepare match {
      case Some(p) if p.process == ProcessId.current => live.contains(p.owner)
      case Some(p) if p.process.isDead => false
      case other =>
        val length = other.map(_.lease).getOrElse(defaultLength)
        storeTime(hadoopConf, state.folder) - lastSign(hadoopConf, state) <= length
    }

  private def lastSign(hadoopConf: Configuration, state: JournalState): Long = {
    val fs = fileSystem(hadoopConf, state.folder)
    FileSystems.status(fs, path(state.folder, state.run))
      .map(_.getModificationTime).getOrElse(0L).max(state.prepareTime)
  }

  /**
   * The current time in milliseconds, according to the clock that sets the journal's modification
   * times.
   */
  private[publish] def storeTime(hadoopConf: Configuration, folder: TableFolder): Long = {
    val fs = fileSystem(hadoopConf, folder)
    val probe = new Path(folder.journal, s"_temporary-${UUID.randomUUID()}")
    if (Links.inOwn(probe)) throw ZOrderErrors.linked(folder.journal.toString)
    fs.createFile(probe).overwrite(false).build().close() // does not create folders
    try fs.getFileStatus(probe).getModificationTime
    finally fs.delete(probe, false)
  }

  private def path(folder: TableFolder, run: Long): Path =
    new Path(folder.journal, s"_$run.lease")

  /** The folder's file system. For a local path, it does not write Hadoop's checksum files. */
  private def fileSystem(hadoopConf: Configuration, folder: TableFolder): FileSystem =
    FileSystems.withoutChecksums(folder.journal.getFileSystem(hadoopConf))
}
