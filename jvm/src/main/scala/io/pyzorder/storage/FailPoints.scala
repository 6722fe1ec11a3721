package io.pyzorder.storage

import java.util.concurrent.TimeUnit

import org.apache.spark.sql.internal.SQLConf

import io.pyzorder.common.ZOrderConf

/**
 * Where tests end the process or let it stand still: `spark.sql.zorder.test.killAt` names one of
 * the points below, `spark.sql.zorder.test.pauseAt` one or several, with commas.
 */
object FailPoints {

  /**
   * Every point: of a run, of the recovery of one, of VACUUM, of a run that switches the table's
   * location, each in the order they come.
   */
  val all: Seq[String] = Seq(
    "after-prepare", "after-verify", "after-markers", "after-index", "after-retire", "mid-retire",
    "before-commit", "after-commit", "mid-move-in", "moved-in", "before-done", "after-done",
    "recovery-begun", "recovery-decided", "recovery-undoing", "recovery-completing",
    "recovery-moved", "vacuum-found", "mid-vacuum",
    "switch-recorded", "switch-filled", "switch-committed", "before-switch", "after-switch")

  /** Sends the process SIGKILL here, or SIGSTOP until it gets SIGCONT, if the session says so. */
  def reach(conf: SQLConf, point: String): Unit = {
    require(all.contains(point), point)
    if (ZOrderConf.testKillAt.get(conf) == point) {
      System.err.println(s"killed at $point")
      send("KILL")
      Runtime.getRuntime.halt(137)
    }
    if (ZOrderConf.testPauseAt.get(conf).split(',').contains(point)) {
      send("STOP")
      Thread.sleep(500) // the signal is sent; not every thread has stopped yet
    }
  }

  private def send(signal: String): Unit = {
    val pid = ProcessId.current.pid.toString
    new ProcessBuilder("kill", s"-$signal", pid).start().waitFor(10, TimeUnit.SECONDS)
  }
}
