package io.pyzorder.common

/** Makes untrusted text safe to show on a terminal or in a log. */
private[pyzorder] object Printable {

  /**
   * Returns the text on one line. Line breaks and tabs become spaces, because text after a line
   * break in a log could look like a separate message. Other control characters, which a terminal
   * could interpret as commands, and characters that reorder text become U+FFFD.
   */
  def apply(text: String): String = text.map {
    case '\n' | '\r' | '\t' | '\u2028' | '\u2029' => ' '
    case c if Character.isISOControl(c) || Reordering(Character.getDirectionality(c)) => '\ufffd'
    case c => c
  }

  /** The directionalities of characters that change the order in which other text is shown. */
  private val Reordering: Set[Byte] = {
    import Character._
    Set(
      DIRECTIONALITY_LEFT_TO_RIGHT_EMBEDDING,
      DIRECTIONALITY_RIGHT_TO_LEFT_EMBEDDING,
      DIRECTIONALITY_LEFT_TO_RIGHT_OVERRIDE,
      DIRECTIONALITY_RIGHT_TO_LEFT_OVERRIDE,
      DIRECTIONALITY_POP_DIRECTIONAL_FORMAT,
      DIRECTIONALITY_LEFT_TO_RIGHT_ISOLATE,
      DIRECTIONALITY_RIGHT_TO_LEFT_ISOLATE,
      DIRECTIONALITY_FIRST_STRONG_ISOLATE,
      DIRECTIONALITY_POP_DIRECTIONAL_ISOLATE)
  }
}
