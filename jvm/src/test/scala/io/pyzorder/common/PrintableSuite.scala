package io.pyzorder.common

import org.scalatest.funsuite.AnyFunSuite

class PrintableSuite extends AnyFunSuite {

  for ((text, shown) <- Seq(
      "day=1/ü z.parquet" -> "day=1/ü z.parquet",
      "a\nb\r\tc\u2028d" -> "a b  c d",
      "t\u202egol\u202c.parquet\u2066" -> "t\ufffdgol\ufffd.parquet\ufffd",
      "\u001b]0;x\u0007\u009b2J\u007f" -> "\ufffd]0;x\ufffd\ufffd2J\ufffd")) {
    test(s"unsafe text is shown as [$shown]")(assert(Printable(text) == shown))
  }
}
