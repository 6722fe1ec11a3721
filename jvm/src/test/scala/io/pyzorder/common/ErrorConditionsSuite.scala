package io.pyzorder.common

import org.scalatest.funsuite.AnyFunSuite

class ErrorConditionsSuite extends AnyFunSuite {

  private val notFound = ErrorConditions.entry("ZORDER_PATH_NOT_FOUND")

  test("an entry has a condition, an SQLSTATE and a message") {
    assert(notFound.condition == "ZORDER_PATH_NOT_FOUND")
    assert(notFound.state == "42K03")
    assert(notFound.sentence(Map("path" -> "/a")).startsWith("The path /a does not exist. "))
  }

  test("for a variant, users see the name of the condition") {
    assert(ErrorConditions.entry("ZORDER_NO_SPACE.FULL").condition == "ZORDER_NO_SPACE")
  }

  test("a value that looks like a placeholder or a group reference is not changed") {
    assert(notFound.sentence(Map("path" -> "/<path>/$1\\")).contains("/<path>/$1\\ does not"))
  }

  for (parameters <- Seq(Map.empty[String, String], Map("path" -> "/a", "other" -> "/b"))) {
    test(s"${parameters.size} parameters are rejected if the message needs one") {
      assertThrows[IllegalArgumentException](notFound.sentence(parameters))
    }
  }

  for (name <- Seq("ZORDER_NO_SUCH", "ZORDER_NO_SPACE", "ZORDER_NO_SPACE.NO_SUCH")) {
    test(s"there is no message for $name") {
      assertThrows[IllegalArgumentException](ErrorConditions.entry(name))
    }
  }

  test("passwords are masked in the message and in the parameters") {
    val error = ZOrderErrors.pathNotFound("s3a://key:hunter2@bucket/t")
    assert(!(error.getMessage + error.getMessageParameters).contains("hunter2"))
    assert(error.getMessageParameters.get("path") == "s3a://***@bucket/t")
  }
}
