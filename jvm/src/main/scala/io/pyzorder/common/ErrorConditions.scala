package io.pyzorder.common

import java.util.regex.Matcher

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * The error conditions in pyzorder/error_conditions.json, a file that the Scala code, the Python
 * code and the documentation share. The file contains the SQLSTATE and the message of each
 * condition. A condition with several possible reasons has a variant for each reason, such as
 * `ZORDER_NO_SPACE.FULL`. Users see the name of the condition, without the variant.
 */
private[common] object ErrorConditions {

  /**
   * @param condition the name of the condition, `ZORDER_…`
   * @param state     the SQLSTATE
   * @param text      the message, with a placeholder `<name>` for each parameter
   */
  final case class Entry(condition: String, state: String, text: String) {

    /**
     * The message with its parameters filled in. The keys of `parameters` must be exactly the names
     * of the placeholders in the message.
     */
    def sentence(parameters: Map[String, String]): String = {
      val named = Placeholder.findAllMatchIn(text).map(_.group(1)).toSet
      require(named == parameters.keySet,
        s"$condition needs ${named.mkString(", ")}, but got ${parameters.keys.mkString(", ")}")
      Placeholder.replaceAllIn(text, found => Matcher.quoteReplacement(parameters(found.group(1))))
    }
  }

  /** The entry of a condition, or of one of its variants. */
  def entry(name: String): Entry = {
    val parts = name.split('.')
    val condition = catalogue.path(parts.head)
    val message =
      if (parts.length == 1) condition.path("message")
      else condition.path("variants").path(parts(1))
    require(message.isArray, s"error_conditions.json has no $name")
    val lines = (0 until message.size).map(message.get(_).asText)
    Entry(parts.head, condition.get("sqlState").asText, lines.mkString(" "))
  }

  /** Reads the conditions, which is possible only while the jar's class loader is open. */
  def load(): Unit = catalogue

  private lazy val catalogue: JsonNode = {
    val stream = getClass.getResourceAsStream("/io/pyzorder/error_conditions.json")
    require(stream != null, "pyzorder's jar does not contain error_conditions.json")
    try new ObjectMapper().readTree(stream)
    finally stream.close()
  }

  private val Placeholder = "<([A-Za-z]+)>".r
}
