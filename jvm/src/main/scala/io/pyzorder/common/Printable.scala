package io.pyzorder.common

/** Makes text that others may have written safe to show on a terminal or in a log. */
private[pyzorder] object Printable {

  /**
   * The text on one line, with spaces for line breaks and tabs and U+FFFD for other control
   * characters. A terminal could interpret those as commands, and a line break in a log could look
   * like the beginning of another message.
   */
  def apply(text: String): String =
    if (!text.exists(c => Character.isISOControl(c))) text
    else text.map {
      case '\n' | '\r' | '\t' => ' '
      case c => if (Character.isISOControl(c)) '\ufffd' else c
    }
}
