package io.pyzorder.common

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Parses the JSON files in a table's folder, which others may have written. */
private[pyzorder] object BoundedJson {

  private val mapper = new ObjectMapper()

  /** Input longer than `FewBytes` must have at least `TokenBytes` bytes per token on average. */
  private val FewBytes = 1 << 20
  private val TokenBytes = 5

  /**
   * Parses JSON. Long input is rejected if it has more tokens than a pyzorder file of the same
   * length can have, because a parsed tree needs far more memory than its source, especially if the
   * source looks like `[],[],[]…`. Genuine files always pass: a record has three field names and a
   * 13-digit time per file, and a pointer has two field names per column, each on its own line.
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
