package io.pyzorder.storage

import java.lang.management.ManagementFactory
import java.net.InetAddress
import java.nio.charset.StandardCharsets.ISO_8859_1
import java.nio.file.{Files, Path, Paths}

import scala.util.control.NonFatal

import io.pyzorder.common.Printable

/**
 * Identifies a process uniquely, across hosts, reboots and reused process ids.
 *
 * @param host    the host name, the boot id and the PID namespace (two containers may share a host
 *                name)
 * @param pid     the process id
 * @param started the start time in clock ticks since boot; -1 if unknown
 */
final case class ProcessId(host: String, pid: Long, started: Long) {

  /**
   * Whether the process is known to have ended. False if this cannot be determined, which is always
   * the case for a process on another host.
   */
  def isDead: Boolean =
    host == ProcessId.current.host && started >= 0 && Files.exists(ProcessId.Proc) &&
      !ProcessId.startOf(pid).contains(started)

  /** The process as shown in error messages. */
  def describe: String = s"process $pid on " +
    Printable(host.takeWhile(_ != '/').take(ProcessId.MaxShown))
}

object ProcessId {

  private val MaxShown = 100

  private val Proc: Path = Paths.get("/proc/self/stat")

  /** The id of this process. */
  lazy val current: ProcessId = {
    val pid = ManagementFactory.getRuntimeMXBean.getName.takeWhile(_ != '@').toLong
    ProcessId(hostId, pid, startOf(pid).getOrElse(-1L))
  }

  private def hostId: String = {
    val name =
      try InetAddress.getLocalHost.getHostName
      catch { case NonFatal(_) => "localhost" }
    val boot = text(Paths.get("/proc/sys/kernel/random/boot_id")).map(_.trim).getOrElse("")
    val space =
      try Files.readSymbolicLink(Paths.get("/proc/self/ns/pid")).toString
      catch { case NonFatal(_) => "" }
    s"$name/$boot/$space"
  }

  /**
   * The process's start time in clock ticks since boot; None if the process has ended (a zombie
   * counts as ended) or if its start time is unknown.
   */
  private def startOf(pid: Long): Option[Long] =
    text(Paths.get(s"/proc/$pid/stat")).flatMap { stat =>
      val fields = stat.drop(stat.lastIndexOf(')') + 2).split(' ')
      if (fields.length < 20 || fields(0) == "Z" || fields(0) == "X") None
      else Some(fields(19).toLong)
    }

  private def text(path: Path): Option[String] =
    try Some(new String(Files.readAllBytes(path), ISO_8859_1))
    catch { case NonFatal(_) => None }
}
