package io.pyzorder.index.model

import org.apache.spark.sql.types.DataType

/**
 * A leaf column with statistics in the index table. It is either a column of the data files, a
 * ZValueColumn, or an ExpressionColumn.
 *
 * @param path     the top-level column's name, followed by the names of the struct fields that lead
 *                 to the leaf
 * @param dataType the column's type in Spark, which is also the type of its bounds
 */
final case class IndexedColumn(path: Seq[String], dataType: DataType) {

  /**
   * The path in SQL: its parts joined by dots. A part that contains a dot or a backtick is quoted.
   */
  def name: String = IndexedColumn.nameOf(path)

  /** The name to show to users: the text of an expression, or the name of any other column. */
  def label: String = IndexedColumn.labelOf(path)

  /** The top-level columns of the table from which the values are read. */
  def inputs: Seq[String] = ExpressionColumn.ofPath(path).fold(path.take(1))(_.inputs)
}

object IndexedColumn {

  /** The maximum number of columns in an index, and the maximum number of names in a path. */
  val MaxColumns: Int = 10000
  val MaxDepth: Int = 100

  /**
   * `a.b` for Seq(a, b), and `` `a.b` `` for Seq(a.b). Different paths always have different names.
   */
  def nameOf(path: Seq[String]): String = path.map(quoteIfNeeded).mkString(".")

  /** The text of an expression that is indexed as a column, or the name of an ordinary column. */
  def labelOf(path: Seq[String]): String =
    ExpressionColumn.ofPath(path).fold(nameOf(path))(_.text)

  private def quoteIfNeeded(part: String): String =
    if (part.exists(c => c == '.' || c == '`')) "`" + part.replace("`", "``") + "`" else part
}
