package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.StoreFailures
import io.pyzorder.publish.Writer

/**
 * What a statement does to a table under its lock, in one life cycle: validate, begin, run, end.
 *
 * @param operation what others are told that the lock is held for, such as OPTIMIZE
 * @tparam T the statement's result
 */
private[commands] abstract class TableAction[T](
    session: shim.SparkSession,
    table: ResolvedTable,
    operation: String) {

  /**
   * Refuses, before the lock is taken, what cannot be done. Some: nothing has to be written, and
   * this is the result.
   */
  def validate(): Option[T]

  /** Takes the lock; what a dead writer left is finished first. */
  def begin(): Writer = Writer.begin(session, table.folder(session), operation)

  /** Does it. `writer` gives up afterwards what was not published. */
  def run(writer: Writer): T

  /** Comes last, whether `run` succeeded or not. */
  def end(): Unit = table.refresh(session)
}

private[commands] object TableAction {

  /**
   * Runs an action. If the table was moved to another folder since it was looked up, perhaps by the
   * recovery in this very `begin`, the action starts again on the table as it is now.
   */
  def execute[T](session: shim.SparkSession, table: ResolvedTable)(
      action: ResolvedTable => TableAction[T]): T =
    StoreFailures.told(table.root) {
      SwitchingTables.following(session, table) { current =>
        val begun = action(current)
        begun.validate().getOrElse {
          val writer = begun.begin()
          try {
            Writer.use(writer) {
              SwitchingTables.carry(session, current)
              begun.run(writer)
            }
          } finally begun.end()
        }
      }
    }
}
