package io.pyzorder.common

import org.apache.spark.SparkContext

/** What Spark's own pages, and those who wait, learn of the jobs of a statement. */
object JobDescription {

  /** Runs `body`, whose jobs are described as `what`; later ones as before. */
  def during[T](context: SparkContext, what: String)(body: => T): T = {
    val before = context.getLocalProperty(Key)
    context.setJobDescription(what)
    try body
    finally context.setJobDescription(before)
  }

  /** Runs `body`, whose jobs are the step `what` of a statement; an outer step goes on after it. */
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

  /** The step that a job's tags name. */
  def stepOf(tags: Iterable[String]): Option[String] =
    tags.collectFirst { case tag if tag.startsWith(StepTag) => tag.stripPrefix(StepTag) }

  /** What the tag of a step begins with; a command line reads it, too. */
  private val StepTag = "pyzorder-step: "

  /** Spark's own name of it. */
  private val Key = "spark.job.description"
}
