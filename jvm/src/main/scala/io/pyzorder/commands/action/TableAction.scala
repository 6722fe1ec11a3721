package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.StoreFailures
import io.pyzorder.publish.Writer

/**
 * The work that a statement does on a table while it holds the table's lock. Its life cycle is
 * validate, begin, run, end.
 *
 * @param operation the command for which the lock is taken, such as OPTIMIZE, as shown to other
 *                  writers
 * @tparam T the statement's result
 */
private[commands] abstract class TableAction[T](
    session: shim.SparkSession,
    table: ResolvedTable,
    operation: String) {

  /**
   * Throws, before the lock is taken, if the statement cannot be executed. Returns the statement's
   * result if there is nothing to write.
   */
  def validate(): Option[T]

  /** Takes the lock, after recovering the run of a dead writer. */
  def begin(): Writer = Writer.begin(session, table.folder(session), operation)

  /** Executes the statement. If this does not publish anything, `writer` is aborted afterwards. */
  def run(writer: Writer): T

  /** Runs last, whether `run` succeeded or not. */
  def end(): Unit = table.refresh(session)
}

private[commands] object TableAction {

  /**
   * Runs an action. If the table was moved to another folder after it was looked up, perhaps by the
   * recovery in `begin`, the action starts again on the current table.
   */
  def execute[T](session: shim.SparkSession, table: ResolvedTable)(
      action: ResolvedTable => TableAction[T]): T =
    StoreFailures.translate(table.root) {
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
