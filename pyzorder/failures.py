"""Converts exceptions to a sentence for people and an exit code for scripts."""

from __future__ import annotations

import re

#: Conditions after which a retry may succeed. They have a separate exit code.
CONTENDED = ("ZORDER_CONCURRENT_OPTIMIZE", "ZORDER_CONFLICT")

#: Conditions raised if Spark cannot be started or reached.
UNAVAILABLE = (
    "ZORDER_CONNECT_CLIENT",
    "ZORDER_JARS_OVERRIDDEN",
    "ZORDER_JAR_MISSING",
    "ZORDER_JAVA_INCOMPLETE",
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

#: The part of Spark's messages that helps only Spark developers.
TAIL = re.compile(
    r";?\s*(\n?;?\s*line \d+,? pos \d+|SQLSTATE: \w{5}|\n== (SQL|DataFrame)|"
    r"\n?This stopped SparkContext was created at|\n?JVM stacktrace|\n?Driver stacktrace|"
    r"\n\s*at \S+\().*",
    re.DOTALL,
)

#: Names of exceptions that no statement raises on purpose.
UNEXPECTED = re.compile(r"(java\.lang|java\.util|scala)\.\w+$")


class Interrupted(Exception):
    """Raised if a signal stopped the command. The message says what happened to the command's
    work."""

    def __init__(self, message: str, signal: int = 2) -> None:
        super().__init__(message)
        self.signal = signal


def exit_code(failure: BaseException) -> int:
    """Returns the exit code of the process, as documented in `pyzorder --help`."""
    if isinstance(failure, Interrupted):
        return 128 + failure.signal
    if condition(failure) in UNAVAILABLE:
        return 3
    return 4 if condition(failure) in CONTENDED else 1


def condition(failure: BaseException) -> str | None:
    """Returns the condition in brackets at the start of Spark's or pyzorder's message, if any."""
    found = re.match(r"\s*\[([A-Z0-9_.]+)\]", message(failure))
    return found[1] if found else None


def sentence(failure: BaseException) -> str:
    """Returns the message on one line, without plans, stack traces or positions."""
    text = TAIL.sub("", message(failure)).strip()
    return re.sub(r"\s*\n\s*", " ", text).rstrip(";") or type(failure).__name__


def message(failure: BaseException) -> str:
    """Returns an exception's message or, for a JVM exception without a condition, the innermost
    cause's message."""
    java = getattr(failure, "java_exception", None) or getattr(failure, "_origin", None)
    if java is None or condition_in(str(failure)):
        return str(failure) or type(failure).__name__
    while java.getCause() is not None:
        java = java.getCause()
    said, kind = java.getMessage(), java.getClass()
    name = str(kind.getSimpleName())
    if not said:
        return name
    # An unexpected exception of the language's own libraries says little without its name.
    return f"{name}: {said}" if UNEXPECTED.match(str(kind.getName())) else str(said)


def condition_in(text: str) -> bool:
    """Whether text starts with a condition in brackets."""
    return re.match(r"\s*\[[A-Z0-9_.]+\]", text) is not None
