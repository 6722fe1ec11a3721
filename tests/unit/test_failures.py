"""Each exception is reported in one sentence and leads to the right exit code."""

from __future__ import annotations

import pytest

from pyzorder import errors
from pyzorder.failures import UNAVAILABLE, Interrupted, exit_code, sentence

# (the exception, the exit code, the sentence)
FAILURES: list[tuple[BaseException, int, str]] = [
    (ValueError("[ZORDER_CONFLICT] Too late. SQLSTATE: 40001"), 4, "[ZORDER_CONFLICT] Too late."),
    (ValueError("[ZORDER_CONCURRENT_OPTIMIZE] Wait."), 4, "[ZORDER_CONCURRENT_OPTIMIZE] Wait."),
    (
        ValueError("[A.B] No such\ntable.; line 1 pos 14;\n'Project [*]\n+- 'Unresolved"),
        1,
        "[A.B] No such table.",
    ),
    (ValueError("[X] Not this\n== SQL ==\nSELECT 1"), 1, "[X] Not this"),
    (
        ValueError("It stopped.\nThis stopped SparkContext was created at:\n\norg.apache.X(Y:1)"),
        1,
        "It stopped.",
    ),
    (ValueError("plain\n\tat org.x.Y(Z.scala:1)"), 1, "plain"),
    (errors.no_workload("t"), 1, str(errors.no_workload("t"))),
    *((errors.ZOrderError(condition, "No."), 3, f"[{condition}] No.") for condition in UNAVAILABLE),
    (Interrupted("Stopped."), 130, "Stopped."),
    (Interrupted("Stopped.", 15), 143, "Stopped."),
    (KeyError(), 1, "KeyError"),
]


class FromJava(Exception):
    """An exception as py4j raises it: `java_exception` is the JVM's exception, which is here this
    object itself."""

    def __init__(self, name: str, text: str | None) -> None:
        super().__init__("An error occurred while calling o1.sql.")
        self._name, self._text = name, text
        self.java_exception = self

    def getCause(self) -> None:
        return None

    def getMessage(self) -> str | None:
        return self._text

    def getClass(self) -> FromJava:
        return self

    def getName(self) -> str:
        return self._name

    def getSimpleName(self) -> str:
        return self._name.rsplit(".", 1)[-1]


#: (the class of a JVM exception, its message, the sentence)
OF_JAVA = [
    ("java.util.NoSuchElementException", "empty", "NoSuchElementException: empty"),
    ("java.lang.NullPointerException", None, "NullPointerException"),
    ("scala.MatchError", "7", "MatchError: 7"),
    ("java.io.IOException", "The disk is full.", "The disk is full."),
    ("org.apache.spark.SparkException", "Job aborted.", "Job aborted."),
]


@pytest.mark.parametrize(("name", "text", "says"), OF_JAVA)
def test_exceptions_of_the_jvm(name: str, text: str | None, says: str) -> None:
    """An exception that no statement raises on purpose is named."""
    assert sentence(FromJava(name, text)) == says


@pytest.mark.parametrize(("raised", "code", "says"), FAILURES)
def test_failures(raised: BaseException, code: int, says: str) -> None:
    assert (exit_code(raised), sentence(raised)) == (code, says)
