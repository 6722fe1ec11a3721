package io.pyzorder.workload

import java.util.concurrent.{Executors, ThreadFactory, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd, SparkListenerEvent}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.pyzorder.{shim, FinishedQuery}
import org.slf4j.LoggerFactory

import io.pyzorder.common.ZOrderConf
import io.pyzorder.skipping.files.ZOrderFileIndex
import io.pyzorder.storage.{FileSystems, TableFolder}

/**
 * Records the filters and join keys with which the queries of one application read tables. Works in
 * the background: Spark's listener thread counts the scans of a query after the query has ended,
 * and a timer writes the counts once a minute. If the application is killed, only the counts of the
 * last minute are lost.
 */
private[pyzorder] final class WorkloadRecorder private (context: SparkContext)
    extends SparkListener {

  private val log = LoggerFactory.getLogger(getClass)

  private val application = WorkloadFiles.newApplication()

  private val tables = mutable.HashMap.empty[TableFolder, WorkloadRecorder.Recording]

  /** Held while files are written. Counting continues meanwhile. */
  private val writing = new Object

  private val timer = Executors.newSingleThreadScheduledExecutor(WorkloadRecorder.daemons)

  private def begin(): Unit = {
    context.addSparkListener(this)
    timer.scheduleWithFixedDelay(
      () => flush(), WorkloadRecorder.Seconds, WorkloadRecorder.Seconds, TimeUnit.SECONDS)
  }

  override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
    case FinishedQuery(execution) =>
      try note(execution)
      catch { case NonFatal(failure) => log.info("A query was not recorded", failure) }
    case _ =>
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit = {
    timer.shutdown()
    flush()
    WorkloadRecorder.forget(context)
  }

  private def note(execution: QueryExecution): Unit = {
    val session = execution.sparkSession.asInstanceOf[shim.SparkSession]
    for (conf <- PlannedSettings.of(execution.tracker)) {
      val confidentiality = new Confidentiality(conf, execution.analyzed)
      val values = new JoinedValues(execution.executedPlan, confidentiality.hasRecordableKeys)
      for {
        scan <- ScanConditions.of(execution.optimizedPlan)
        if WorkloadRecorder.isOn(conf, scan.index) && confidentiality.isRecordable
        folder <- WorkloadRecorder.folderOf(scan.index)
        (shape, example) <- Shape.of(scan, values)
      } add(session, folder, WorkloadCounts.one(shape, example, System.currentTimeMillis()))
    }
  }

  private def add(
      session: shim.SparkSession,
      folder: TableFolder,
      counts: WorkloadCounts): Unit = synchronized {
    if (tables.contains(folder) || tables.size < WorkloadRecorder.MaxTables) {
      val recording = tables.getOrElseUpdate(
        folder, new WorkloadRecorder.Recording(session.sessionState.newHadoopConf()))
      recording.pending ++= counts
    }
  }

  /** Writes the counts that have not been written yet. */
  def flush(): Unit = writing.synchronized {
    val changed = synchronized(tables.toSeq.filterNot(_._2.pending.isEmpty))
    changed.foreach { case (folder, recording) =>
      try write(folder, recording)
      catch {
        case NonFatal(failure) =>
          log.info(s"The workload of $folder is not recorded: ${failure.getMessage}")
          synchronized(tables.remove(folder))
      }
    }
  }

  private def write(folder: TableFolder, recording: WorkloadRecorder.Recording): Unit = {
    val added = synchronized {
      val counts = recording.pending
      recording.pending = WorkloadCounts.none
      counts
    }
    val all = kept(folder, recording) ++ added
    WorkloadFiles.write(recording.hadoopConf, folder, application, recording.number + 1, all)
    recording.written = all
    recording.number += 1
  }

  /** What this application's file contains; empty if someone has deleted the file. */
  private def kept(folder: TableFolder, recording: WorkloadRecorder.Recording): WorkloadCounts = {
    val file = WorkloadFiles.path(folder, application, recording.number)
    if (FileSystems.exists(file.getFileSystem(recording.hadoopConf), file)) recording.written
    else WorkloadCounts.none
  }

  private def recorded(hadoopConf: Configuration, folder: TableFolder): WorkloadCounts =
    writing.synchronized {
      WorkloadFiles.read(hadoopConf, folder) ++
        synchronized(tables.get(folder).fold(WorkloadCounts.none)(_.pending))
    }

  private def clear(hadoopConf: Configuration, folder: TableFolder): Unit =
    writing.synchronized {
      synchronized(tables.remove(folder))
      WorkloadFiles.clear(hadoopConf, folder)
    }
}

private[pyzorder] object WorkloadRecorder {

  private val Seconds = 60L
  private val MaxTables = 1000

  private val recorders = mutable.HashMap.empty[SparkContext, WorkloadRecorder]

  private val daemons: ThreadFactory = run => {
    val thread = new Thread(run, "pyzorder-workload")
    thread.setDaemon(true)
    thread
  }

  /**
   * The counts of one table.
   *
   * @param pending counts that have not been written
   * @param written the contents of the application's file
   * @param number  the file's number; 0 if there is none yet
   */
  private final class Recording(val hadoopConf: Configuration) {
    var pending: WorkloadCounts = WorkloadCounts.none
    var written: WorkloadCounts = WorkloadCounts.none
    var number: Int = 0
  }

  /** Starts the application's recorder unless it is running. */
  def start(context: SparkContext): Unit = synchronized {
    if (!recorders.contains(context)) {
      val recorder = new WorkloadRecorder(context)
      recorders(context) = recorder
      recorder.begin()
    }
  }

  private def forget(context: SparkContext): Unit = synchronized(recorders.remove(context))

  /** The application's recorder, if it has been started. */
  private def of(session: shim.SparkSession): Option[WorkloadRecorder] =
    synchronized(recorders.get(session.sparkContext))

  /** Whether queries on the table are to be recorded. */
  def isOn(conf: SQLConf, index: ZOrderFileIndex): Boolean =
    ZOrderConf.workloadRecord.get(conf, index.properties)

  /** The counts of all applications, including those of this one that have not been written. */
  def read(session: shim.SparkSession, folder: TableFolder): WorkloadCounts = {
    val hadoopConf = session.sessionState.newHadoopConf()
    of(session).fold(WorkloadFiles.read(hadoopConf, folder))(_.recorded(hadoopConf, folder))
  }

  /** Deletes all counts. */
  def clear(session: shim.SparkSession, folder: TableFolder): Unit = {
    val hadoopConf = session.sessionState.newHadoopConf()
    of(session).fold(WorkloadFiles.clear(hadoopConf, folder))(_.clear(hadoopConf, folder))
  }

  /** Writes the counts of this application now. */
  def flush(session: shim.SparkSession): Unit = of(session).foreach(_.flush())

  /**
   * The folder of the table that an index lists. None if the index lists several folders, or one
   * that is named like a partition, because the recorder must not write outside the table's folder
   * or into a part of it.
   */
  private def folderOf(index: ZOrderFileIndex): Option[TableFolder] = index.rootPaths match {
    case Seq(root) if !root.getName.contains("=") => Some(new TableFolder(root))
    case _ => None
  }
}
