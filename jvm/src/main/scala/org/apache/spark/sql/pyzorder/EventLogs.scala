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
 * The SQL executions that Spark's event logs tell of, read by Spark's own reader, which it keeps to
 * its own packages: plain or compressed, single files or rolling ones, whatever lies below a path.
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

  /** Files that were read, wholly or in part. */
  def files: Int = numLogs

  /** What was not read, a sentence each. */
  def unread: JArrayList[String] = left

  /**
   * The next execution's start, as JSON with `executionId`, `rootExecutionId`, `description`,
   * `sparkPlanInfo` and `application`, the name of its log; null at the end.
   */
  def next(): String = {
    var found: String = null
    while (found == null && advance()) {
      val (log, reader) = current.get
      val line =
        try reader.readLine()
        catch {
          case failure: IOException => // of an application that still runs, or was killed
            left.add(s"${log.file.getName} ends in the middle (${failure.getMessage})")
            null
        }
      if (line == null) close()
      else if (line.contains(Start)) found = startOf(log, line)
    }
    found
  }

  /** Whether a log is open, or could be opened. */
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
      case failure: IOException => // the last line, torn
        left.add(s"${log.file.getName} has a line that is no JSON")
        null
    }

  private def logsOf(status: FileStatus, isRoot: Boolean): Seq[Log] = {
    val name = status.getPath.getName
    EventLogFileReader(fs, status) match {
      case Some(reader) => reader.listEventLogFiles.map(file => Log(name, file.getPath))
      case None if status.isDirectory && isRoot =>
        fs.listStatus(status.getPath).sortBy(_.getPath).toSeq.flatMap(logsOf(_, isRoot = false))
      case None =>
        if (!name.startsWith(".")) left.add(s"$name is no event log")
        Nil
    }
  }
}

private object EventLogs {

  /** How the event's name ends. */
  val Start = "SparkListenerSQLExecutionStart"

  /** A file of an application's log. */
  final case class Log(application: String, file: Path)
}
