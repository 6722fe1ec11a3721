package org.apache.spark.sql.pyzorder

import java.io.{BufferedReader, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{ArrayList => JArrayList}

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.spark.deploy.history.EventLogFileReader

/**
 * Iterates over the SQL executions in the Spark event logs at a path. Each log may be plain or
 * compressed, and it may be a single file or a rolling log. The class is in one of Spark's packages
 * because Spark's reader of event logs is private to those packages.
 */
final class EventLogs(session: shim.SparkSession, path: String) {
  import EventLogs._

  private val mapper = new ObjectMapper()
  private val root = new Path(path)
  private val fs: FileSystem = root.getFileSystem(session.sessionState.newHadoopConf())
  private val logs: Iterator[Log] =
    if (fs.exists(root)) logsOf(fs.getFileStatus(root), isRoot = true).iterator else Iterator.empty
  private val left = new JArrayList[String]()
  private var numLogs = 0
  private var current: Option[(Log, BufferedReader)] = None

  /** Number of files that were read, completely or in part. */
  def files: Int = numLogs

  /** A message about each file, or part of a file, that was not read. */
  def unread: JArrayList[String] = left

  /**
   * The start event of the next execution, as JSON with `executionId`, `rootExecutionId`,
   * `description`, `sparkPlanInfo` and `application` (the name of the log); null at the end.
   */
  def next(): String = {
    var found: String = null
    while (found == null && advance()) {
      val (log, reader) = current.get
      val line =
        try reader.readLine()
        catch {
          case failure: IOException => // the application is still running, or was killed
            left.add(s"${log.file.getName} is truncated (${failure.getMessage})")
            null
        }
      if (line == null) close()
      else if (line.contains(Start)) found = startOf(log, line)
    }
    found
  }

  /** Opens the next log unless one is open. Returns false if there are no more logs. */
  private def advance(): Boolean = {
    while (current.isEmpty && logs.hasNext) {
      val log = logs.next()
      try {
        val stream = EventLogFileReader.openEventLog(log.file, fs)
        current = Some(log -> new BufferedReader(new InputStreamReader(stream, UTF_8)))
        numLogs += 1
      } catch {
        case NonFatal(failure) =>
          left.add(s"${log.file.getName} cannot be read (${failure.getMessage})")
      }
    }
    current.isDefined
  }

  private def close(): Unit = {
    current.foreach(_._2.close())
    current = None
  }

  private def startOf(log: Log, line: String): String =
    try mapper.readTree(line) match {
        case event: ObjectNode if event.path("Event").asText("").endsWith(Start) =>
          event.retain("executionId", "rootExecutionId", "description", "sparkPlanInfo")
          event.put("application", log.application)
          mapper.writeValueAsString(event)
        case _ => null
      }
    catch {
      case failure: IOException => // a last line that was cut off
        left.add(s"${log.file.getName} has a line that is not JSON")
        null
    }

  private def logsOf(status: FileStatus, isRoot: Boolean): Seq[Log] = {
    val name = status.getPath.getName
    EventLogFileReader(fs, status) match {
      case Some(reader) => reader.listEventLogFiles.map(file => Log(name, file.getPath))
      case None if status.isDirectory && isRoot =>
        fs.listStatus(status.getPath).sortBy(_.getPath).toSeq.flatMap(logsOf(_, isRoot = false))
      case None =>
        if (!name.startsWith(".")) left.add(s"$name is not an event log")
        Nil
    }
  }
}

private object EventLogs {

  /** The class name, without the package, of the event that Spark logs when an execution starts. */
  val Start = "SparkListenerSQLExecutionStart"

  /** A file of an application's event log. */
  final case class Log(application: String, file: Path)
}
