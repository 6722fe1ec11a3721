package io.pyzorder.common

import org.apache.spark.SparkContext

/** Describes a statement's jobs for the Spark UI and for progress displays. */
object JobDescription {

  /**
   * While `body` runs, its jobs have the description `what`. Afterwards, the previous description
   * is restored.
   */
  def during[T](context: SparkContext, what: String)(body: => T): T = {
    val before = context.getLocalProperty(Key)
    context.setJobDescription(what)
    try body
    finally context.setJobDescription(before)
  }

  /**
   * While `body` runs, its jobs have a tag that names the step `what`. Afterwards, the tag of the
   * enclosing step, if any, is restored.
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

  /** The prefix of the tags that name a step. pyzorder/bridge.py uses the same prefix. */
  private val StepTag = "pyzorder-step: "

  /** The property in which Spark keeps a job's description. */
  private val Key = "spark.job.description"
}
