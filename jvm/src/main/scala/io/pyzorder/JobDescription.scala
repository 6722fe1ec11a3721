package io.pyzorder

import org.apache.spark.SparkContext

/** What Spark's own pages say of the jobs of a statement. */
object JobDescription {

  /** Runs `body`, whose jobs are described as `what`; later ones as before. */
  def during[T](context: SparkContext, what: String)(body: => T): T = {
    val before = context.getLocalProperty(Key)
    context.setJobDescription(what)
    try body
    finally context.setJobDescription(before)
  }

  /** Spark's own name of it. */
  private val Key = "spark.job.description"
}
