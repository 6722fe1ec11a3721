package io.pyzorder.common

import org.apache.spark.SparkContext

/** Describes a statement's jobs for the Spark UI and for progress displays. */
object JobDescription {

  /**
   * Uses `what` as the description of the jobs that `body` runs, then restores the previous
   * description.
   */
  def during[T](context: SparkContext, what: String)(body: => T): T = {
    val before = context.getLocalProperty(Key)
    context.setJobDescription(what)
    try body
    finally context.setJobDescription(before)
  }

  /**
   * Tags the jobs that `body` runs with the step `what`, then restores the enclosing step, if any.
   */
  def step[T](context: SparkContext, what: String)(body: => T): T = {
    val outer = context.getJobTags().filter(_.startsWith(StepTag))
    outer.foreach(context.removeJobTag)
    context.addJobTag(StepTag + what)
    try body
    finally {
      context.removeJobTag(StepTag + what)
      outer.foreach(context.addJobTag)
    }
  }

  /** The step named by a job's tags. */
  def stepOf(tags: Iterable[String]): Option[String] =
    tags.collectFirst { case tag if tag.startsWith(StepTag) => tag.stripPrefix(StepTag) }

  /** The prefix of the tags that name a step. The command line also relies on this prefix. */
  private val StepTag = "pyzorder-step: "

  /** The property in which Spark keeps a job's description. */
  private val Key = "spark.job.description"
}
