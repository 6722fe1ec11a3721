package io.pyzorder.publish

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.ZOrderConf

/** Where tests kill the process: `spark.sql.zorder.test.killAt` names one of the points below. */
object FailPoints {

  /** Every point: of a run, of the recovery of one, of VACUUM, each in the order they come. */
  val all: Seq[String] = Seq(
    "after-prepare", "after-verify", "after-markers", "after-index", "after-retire", "mid-retire",
    "before-commit", "after-commit", "mid-move-in", "before-done", "after-done",
    "recovery-decided", "recovery-undoing", "recovery-completing", "recovery-moved",
    "vacuum-found", "mid-vacuum")

  /** Kills the process here, as SIGKILL does, if the session asks for it. */
  def reach(conf: SQLConf, point: String): Unit = {
    require(all.contains(point), point)
    if (ZOrderConf.testKillAt.get(conf) == point) {
      val pid = ProcessId.current.pid.toString
      new ProcessBuilder("kill", "-9", pid).start().waitFor(10, TimeUnit.SECONDS)
      Runtime.getRuntime.halt(137)
    }
  }
}
