package io.pyzorder.index.model

import org.apache.spark.sql.types.DataType

/**
 * A leaf column the index table keeps statistics of.
 *
 * @param path     the column's name, then the names of the struct fields below it
 * @param dataType the type Spark reads it as, and the type its bounds are stored in
 */
final case class IndexedColumn(path: Seq[String], dataType: DataType) {

  /** The path as SQL writes it: parts joined by dots, a part with a dot or a back-quote quoted. */
  def name: String = IndexedColumn.nameOf(path)
}

object IndexedColumn {

  /** `a.b` for Seq(a, b), and `` `a.b` `` for Seq(a.b): two paths never share a name. */
  def nameOf(path: Seq[String]): String = path.map(quoteIfNeeded).mkString(".")

  private def quoteIfNeeded(part: String): String =
    if (part.exists(c => c == '.' || c == '`')) "`" + part.replace("`", "``") + "`" else part
}
