package io.pyzorder.common

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Parses the JSON files in a table's folder, which may come from an untrusted writer. */
private[pyzorder] object BoundedJson {

  private val mapper = new ObjectMapper()

  /** Input longer than `FewBytes` may have at most one token per `TokenBytes` bytes. */
  private val FewBytes = 1 << 20
  private val TokenBytes = 5

  /**
   * Parses JSON. A parsed tree needs far more memory than its source, especially for input like
   * `[],[],[]…`. Therefore, long input is rejected if it has more tokens than a pyzorder file of
   * the same length can have. Genuine files always pass, because their tokens are long. A record
   * has three field names and a 13-digit time for each file. A pointer has two field names for each
   * column, each on a line of its own.
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
