"""What went wrong, as one sentence for people and one number for scripts."""

from __future__ import annotations

import re

#: Conditions that pass by themselves: the exit code says so.
CONTENDED = ("ZORDER_CONCURRENT_OPTIMIZE", "ZORDER_CONFLICT")

#: Conditions of a Spark that cannot be started or reached.
UNAVAILABLE = (
    "ZORDER_CONNECT_CLIENT",
    "ZORDER_JARS_OVERRIDDEN",
    "ZORDER_JAR_MISSING",
    "ZORDER_JAVA_MISSING",
    "ZORDER_JAVA_TOO_OLD",
    "ZORDER_JVM_NOT_STARTED",
    "ZORDER_JVM_RUNNING",
    "ZORDER_NO_CONNECT_SERVER",
    "ZORDER_PYSPARK_MISSING",
    "ZORDER_SESSION_RUNNING",
    "ZORDER_SPARK_NOT_STARTED",
    "ZORDER_UNSUPPORTED_SPARK",
)

#: Where Spark's messages go on with what only its developers need.
TAIL = re.compile(
    r"[;.]?\s*(\n?;?\s*line \d+,? pos \d+|SQLSTATE: \w{5}|\n== (SQL|DataFrame)|"
    r"\n?This stopped SparkContext was created at|\n?JVM stacktrace|\n?Driver stacktrace|"
    r"\n\s*at \S+\().*",
    re.DOTALL,
)


class Interrupted(Exception):
    """The user or the system stopped the command; the message says what became of its work."""

    def __init__(self, message: str, signal: int = 2) -> None:
        super().__init__(message)
        self.signal = signal


def exit_code(failure: BaseException) -> int:
    """The process's exit code, as `pyzorder --help` documents it."""
    if isinstance(failure, Interrupted):
        return 128 + failure.signal
    if condition(failure) in UNAVAILABLE:
        return 3
    return 4 if condition(failure) in CONTENDED else 1


def condition(failure: BaseException) -> str | None:
    """The name in brackets that Spark's and pyzorder's messages begin with; None without one."""
    found = re.match(r"\s*\[([A-Z0-9_.]+)\]", message(failure))
    return found[1] if found else None


def sentence(failure: BaseException) -> str:
    """The message in one line, without plans, stack traces and positions."""
    text = TAIL.sub("", message(failure)).strip()
    return re.sub(r"\s*\n\s*", " ", text).rstrip(";") or type(failure).__name__


def message(failure: BaseException) -> str:
    """What an exception says; of one of the JVM's, what its innermost cause says."""
    java = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    if java is None or condition_in(str(failure)):
        return str(failure) or type(failure).__name__
    while java.getCause() is not None:
        java = java.getCause()
    said = java.getMessage()
    return str(said) if said else str(java.getClass().getSimpleName())


def condition_in(text: str) -> bool:
    """Whether a text begins with a condition in brackets."""
    return re.match(r"\s*\[[A-Z0-9_.]+\]", text) is not None
