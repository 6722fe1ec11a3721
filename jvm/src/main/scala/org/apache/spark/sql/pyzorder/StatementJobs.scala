package org.apache.spark.sql.pyzorder

import org.apache.spark.JobExecutionStatus
import org.apache.spark.status.api.v1.{JobData, StageStatus}

/** Finds the jobs of a statement in the status store of Spark's UI. The store drops old jobs. */
object StatementJobs {

  /** @param rows number of rows read so far */
  final case class Stage(tasks: Int, ended: Int, rows: Long)

  /** @param tags the tags that were set by the code that started the job */
  final case class Job(number: Int, tags: Seq[String], running: Boolean, stages: Seq[Stage])

  /**
   * The jobs with a tag, oldest first. Spark Connect prepends the ids of the user and the session
   * to a client's tag.
   */
  def tagged(session: shim.SparkSession, tag: String): Seq[Job] =
    session.sparkContext.statusStore.jobsList(null)
      .filter(_.jobTags.exists(found => found == tag || found.endsWith(s"_Tag_$tag")))
      .sortBy(_.jobId).map(jobOf(session, _)).toSeq

  private def jobOf(session: shim.SparkSession, job: JobData): Job = {
    val store = session.sparkContext.statusStore
    val stages = job.stageIds.flatMap(id => store.asOption(store.lastStageAttempt(id)))
      .filter(_.status != StageStatus.SKIPPED)
      .map(s => Stage(s.numTasks, s.numCompleteTasks, s.inputRecords + s.shuffleReadRecords))
    Job(job.jobId, job.jobTags.toSeq, job.status == JobExecutionStatus.RUNNING, stages.toSeq)
  }
}
