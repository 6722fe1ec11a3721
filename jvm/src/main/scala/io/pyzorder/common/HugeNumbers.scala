package io.pyzorder.common

import org.antlr.v4.runtime.CharStreams
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer

/**
 * Finds numbers in SQL text that take Spark's parser very long to read. For example, it computes
 * all digits of `1e100000000BD`. Text that may be forged must not reach the parser with such a
 * number. Spark's own lexer tells numbers from the contents of strings.
 */
private[pyzorder] object HugeNumbers {

  /** An exponent of more than three digits. Spark's decimals have at most 38 digits. */
  private val Exponent = """[0-9.]+E[+-]?[0-9]{4}.*""".r.pattern

  /** Whether an expression contains such a number. */
  def areIn(sql: String): Boolean = {
    val lexer = new SqlBaseLexer(CharStreams.fromString(sql.map(_.toUpper)))
    lexer.removeErrorListeners()
    val tokens = lexer.getAllTokens
    (0 until tokens.size).exists(i => Exponent.matcher(tokens.get(i).getText).matches)
  }
}
