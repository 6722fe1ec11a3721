package io.pyzorder.commands.action

import org.apache.spark.sql.pyzorder.shim

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.StoreFailures
import io.pyzorder.publish.Writer

/**
 * The work that a statement does on a table while it holds the table's lock. An action's life cycle
 * is validate, begin, run, end.
 *
 * @param operation the name of the command, such as OPTIMIZE. Other writers see this name while the
 *                  lock is held
 * @tparam T the statement's result
 */
private[commands] abstract class TableAction[T](
    session: shim.SparkSession,
    table: ResolvedTable,
    operation: String) {

  /**
   * Throws if the statement cannot be executed. Returns the statement's result if there is nothing
   * to write, otherwise None. Runs before the lock is taken.
   */
  def validate(): Option[T]

  /** Recovers the run of a dead writer, if there is one, and takes the lock. */
  def begin(): Writer = Writer.begin(session, table.folder(session), operation)

  /** Executes the statement. If it publishes nothing, `writer` is aborted afterwards. */
  def run(writer: Writer): T

  /** Runs last, whether or not `run` succeeded. */
  def end(): Unit = table.refresh(session)
}

private[commands] object TableAction {

  /**
   * Runs an action. If the table has been moved to another folder since it was looked up, for
   * example by the recovery in `begin`, the action is started again on the current table.
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
