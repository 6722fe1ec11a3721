package io.pyzorder.common

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Parses the JSON files in a table's folder, which others may have written. */
private[pyzorder] object BoundedJson {

  private val mapper = new ObjectMapper()

  /** Texts longer than `FewBytes` must have at least `TokenBytes` bytes per token. */
  private val FewBytes = 1 << 20
  private val TokenBytes = 5

  /**
   * Parses JSON, rejecting long texts with more tokens than a pyzorder file of that length can
   * have. A parsed tree needs more memory than its text, especially if the text is like
   * `[],[],[]…`. Genuine files always pass: a record has three field names and a 13-digit time for
   * each file, and a pointer has two field names for each column, each on a line of its own.
   */
  def tree(text: Array[Byte]): JsonNode = {
    if (text.length > FewBytes) {
      val parser = mapper.getFactory.createParser(text)
      try {
        var left = text.length / TokenBytes
        while (parser.nextToken() != null) {
          left -= 1
          if (left < 0)
            throw new IllegalArgumentException("it has too many JSON tokens for its length")
        }
      } finally parser.close()
    }
    mapper.readTree(text)
  }
}
