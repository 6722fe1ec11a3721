package io.pyzorder.commands.optimize

import org.apache.spark.sql.pyzorder.shim
import org.apache.spark.sql.types.StructField

import io.pyzorder.catalog.ResolvedTable
import io.pyzorder.common.ZOrderErrors
import io.pyzorder.index.model.IndexedColumns
import io.pyzorder.layout.write.InputFooters
import io.pyzorder.publish.relocate.CoLocatedTables

/**
 * Protects the values of columns that are missing from some files. For rows in such a file, a query
 * on a table returns the default that was specified when the column was added to the table, or null
 * if there is no default. A rewritten file stores the values that queries on the optimized table
 * return. If another table uses the same folder and has a different default, the rewrite would
 * change the results of queries on the other table.
 */
private[optimize] object SharedFolderDefaults {

  /**
   * Throws ZORDER_OTHER_DEFAULT if another table in the same folder has a different default. Only
   * tables in the same database are compared. If the target is a path, the tables in the current
   * database are compared.
   */
  def check(session: shim.SparkSession, table: ResolvedTable, facts: Seq[InputFooters]): Unit = {
    val conf = session.sessionState.conf
    val lacking = facts.flatMap(_.lacking).toSet
    if (lacking.nonEmpty) {
      val database =
        table.identifier.flatMap(_.database).getOrElse(session.catalog.currentDatabase)
      for {
        (_, other) <- CoLocatedTables.of(session, database, table.identifier, Set(table.root))
        theirs <- other.schema.find(field => lacking.exists(conf.resolver(_, field.name)))
        ours = table.schema.find(field => conf.resolver(field.name, theirs.name))
        if defaultOf(theirs) != ours.flatMap(defaultOf)
      } throw ZOrderErrors.otherDefault(
        table.name, other.identifier.copy(catalog = None).quotedString, theirs.name)
    }
  }

  private def defaultOf(field: StructField): Option[String] =
    if (field.metadata.contains(IndexedColumns.ExistsDefault)) {
      Some(field.metadata.getString(IndexedColumns.ExistsDefault))
    } else None
}
