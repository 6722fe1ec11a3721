package io.pyzorder.storage

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.ZOrderConf

/**
 * Points at which tests kill or pause the process. `spark.sql.zorder.test.killAt` names one of the
 * points below. `spark.sql.zorder.test.pauseAt` names one or more of them, separated by commas.
 */
object FailPoints {

  /**
   * All points, grouped by where they occur: in a run, in recovery, in VACUUM, in a run that
   * switches locations, and in an index update such as REFRESH SKIPPING INDEX. Each group is in
   * execution order.
   */
  val all: Seq[String] = Seq(
    "after-prepare", "after-verify", "after-markers", "after-index", "after-retire", "mid-retire",
    "before-commit", "after-commit", "mid-move-in", "moved-in", "before-done", "after-done",
    "recovery-begun", "recovery-decided", "recovery-undoing", "recovery-completing",
    "recovery-moved", "vacuum-found", "mid-vacuum",
    "switch-recorded", "switch-filled", "switch-committed", "before-switch", "after-switch",
    "index-collected")

  /**
   * If the session's settings name this point, kills or pauses the process. A paused process
   * continues when it receives SIGCONT.
   */
  def reach(conf: SQLConf, point: String): Unit = {
    require(all.contains(point), point)
    if (ZOrderConf.testKillAt.get(conf) == point) {
      System.err.println(s"killed at $point")
      send("KILL")
      Runtime.getRuntime.halt(137)
    }
    if (ZOrderConf.testPauseAt.get(conf).split(',').contains(point)) {
      send("STOP")
      Thread.sleep(500) // the signal may not have stopped every thread yet
    }
  }

  private def send(signal: String): Unit = {
    val pid = ProcessId.current.pid.toString
    new ProcessBuilder("kill", s"-$signal", pid).start().waitFor(10, TimeUnit.SECONDS)
  }
}
