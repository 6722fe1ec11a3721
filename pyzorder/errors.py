"""Errors raised by the Python code. Each failure has a function that builds its error.

The messages are in error_conditions.json, which the jar and the documentation also use. If an SQL
statement fails, for example because a column is unknown, Spark itself raises an AnalysisException
whose condition starts with ZORDER_. This exception is not converted to a ZOrderError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).parent / "error_conditions.json"
PLACEHOLDER = re.compile(r"<([A-Za-z]+)>")


class ZOrderError(Exception):
    """A failure that is not raised by Spark itself.

    Attributes:
        condition: name of the error condition, which programs can check.
        sql_state: the condition's SQLSTATE; empty if it has none.
    """

    def __init__(self, condition: str, message: str, sql_state: str = "") -> None:
        super().__init__(f"[{condition}] {message}")
        self.condition = condition
        self.sql_state = sql_state


@cache
def conditions() -> dict[str, Any]:
    """Reads the error conditions and their messages.

    Each condition has a `sqlState` and either a `message`, which is a list of sentences, or
    `variants`, which maps each reason for the error to its message.
    """
    found: dict[str, Any] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return found


def error(name: str, /, **parameters: object) -> ZOrderError:
    """Builds the error for a condition, or for a variant of one, such as ZORDER_NO_SPACE.FULL.

    Raises:
        KeyError: there is no such condition, or the parameter for a placeholder is missing.
        TypeError: there is no placeholder for a parameter.
    """
    condition, _, variant = name.partition(".")
    entry = conditions()[condition]
    text = " ".join(entry["variants"][variant] if variant else entry["message"])
    unused = parameters.keys() - set(PLACEHOLDER.findall(text))
    if unused:
        raise TypeError(f"{name} has no placeholder {sorted(unused)}")
    message = PLACEHOLDER.sub(lambda found: str(parameters[found[1]]), text)
    return ZOrderError(condition, without_password(message), entry["sqlState"])


def without_password(text: str) -> str:
    """Masks credentials in the authority of URLs, as in `s3a://key:secret@bucket`."""
    return re.sub(r"://[^/@\s]*@", "://***@", text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


# ---- Spark, its JVM and the jar -----------------------------------------------------------------


def pyspark_missing() -> ZOrderError:
    """PySpark is not installed in this Python environment."""
    return error("ZORDER_PYSPARK_MISSING")


def unsupported_spark(version: str, supported: Iterable[str]) -> ZOrderError:
    """No jar is built for this version of Spark."""
    return error("ZORDER_UNSUPPORTED_SPARK", version=version, supported=_listed(supported))


def jar_missing(spark: str, expected: str, present: Iterable[str]) -> ZOrderError:
    """The package does not contain the jar for the installed Spark."""
    others = _listed(present) or "none"
    return error("ZORDER_JAR_MISSING", spark=spark, expected=expected, present=others)


def connect_builder(extension: str) -> ZOrderError:
    """configure() was called for a Spark Connect client."""
    return error("ZORDER_CONNECT_CLIENT", extension=extension)


def not_a_builder(found: str) -> ZOrderError:
    """configure() was called with something other than a session builder."""
    return error("ZORDER_NOT_A_BUILDER", found=found)


def session_running(extension: str) -> ZOrderError:
    """A session is already running, so its extensions cannot be changed."""
    return error("ZORDER_SESSION_RUNNING", extension=extension)


def jvm_running(jar: str, extension: str) -> ZOrderError:
    """The JVM was started before configure() and does not have the jar on its classpath."""
    return error("ZORDER_JVM_RUNNING", jar=jar, extension=extension)


def jars_overridden(jar: str) -> ZOrderError:
    """PYSPARK_SUBMIT_ARGS sets `--jars`, which overrides the builder's setting."""
    return error("ZORDER_JARS_OVERRIDDEN", jar=jar)


def not_configured(extension: str) -> ZOrderError:
    """The session was started without pyzorder's extension."""
    return error("ZORDER_NOT_CONFIGURED", extension=extension)


def extension_not_loaded(extension: str) -> ZOrderError:
    """The extension is set, but Spark did not find its class and only logged a warning."""
    return error("ZORDER_EXTENSION_NOT_LOADED", extension=extension)


def versions_differ(package: str, jar: str) -> ZOrderError:
    """The jar in the JVM and the Python package are from different releases."""
    return error("ZORDER_VERSIONS_DIFFER", package=package, jar=jar)


def java_missing(program: str | None, spark: str, needed: int) -> ZOrderError:
    """There is no Java, or the `java` program that Spark would use does not run."""
    if program is None:
        return error("ZORDER_JAVA_MISSING.NONE", spark=spark, needed=needed)
    return error("ZORDER_JAVA_MISSING.FAILED", spark=spark, needed=needed, program=program)


def java_incomplete(program: str, spark: str, module: str) -> ZOrderError:
    """The installed Java lacks a module that Spark needs to start."""
    return error("ZORDER_JAVA_INCOMPLETE", program=program, spark=spark, module=module)


def java_too_old(program: str, found: str, spark: str, needed: int) -> ZOrderError:
    """The installed Java is too old for Spark."""
    return error("ZORDER_JAVA_TOO_OLD", program=program, found=found, spark=spark, needed=needed)


def spark_not_started(master: str | None, reason: str) -> ZOrderError:
    """Spark failed to start.

    Args:
        master: the `--master` or `--remote` given on the command line, if any.
    """
    if master is None:
        return error("ZORDER_SPARK_NOT_STARTED.HERE", reason=reason)
    return error("ZORDER_SPARK_NOT_STARTED.AT", master=master, reason=reason)


def jvm_not_started(reason: str) -> ZOrderError:
    """The JVM exited before Python could connect to it.

    Args:
        reason: the line of the JVM's output that explains the exit.
    """
    return error("ZORDER_JVM_NOT_STARTED", reason=reason)


def jvm_gone(what: str) -> ZOrderError:
    """The JVM exited while it was running a statement."""
    return error("ZORDER_JVM_GONE", what=what)


# ---- Spark Connect ------------------------------------------------------------------------------


def no_connect_server(address: str, reason: str) -> ZOrderError:
    """No Spark Connect server answers at the address."""
    return error("ZORDER_NO_CONNECT_SERVER", address=address, reason=reason)


def connect_has_no_plan() -> ZOrderError:
    """explain() was called with a Connect DataFrame."""
    return error("ZORDER_CONNECT_EXPLAIN")


def connect_has_no_layout() -> ZOrderError:
    """A picture or report was requested through a Connect session."""
    return error("ZORDER_CONNECT_LAYOUT")


def connect_has_no_maintenance() -> ZOrderError:
    """maintain() was called with a Connect session."""
    return error("ZORDER_CONNECT_MAINTAIN")


def maintain_what() -> ZOrderError:
    """maintain() was called without tables, a database or a path, or with several of them."""
    return error("ZORDER_MAINTAIN_WHAT")


def not_a_budget(budget: object) -> ZOrderError:
    """maintain() was called with a budget that is not an amount of data."""
    return error("ZORDER_NOT_A_BUDGET", budget=repr(budget))


def not_a_duration(what: str, value: object) -> ZOrderError:
    """A duration cannot be parsed. `what` says what the duration is for."""
    return error("ZORDER_NOT_A_DURATION", what=what, value=repr(value))


def connect_has_no_advisor() -> ZOrderError:
    """advise() was called with a Connect session."""
    return error("ZORDER_CONNECT_ADVISOR")


# ---- arguments ----------------------------------------------------------------------------------


def no_such_picture(suffix: str) -> ZOrderError:
    """The file name of a picture ends in neither `.png` nor `.svg`."""
    if not suffix:
        return error("ZORDER_PICTURE_FORMAT.NO_SUFFIX")
    return error("ZORDER_PICTURE_FORMAT.SUFFIX", suffix=suffix)


def too_many_sides(columns: Iterable[str]) -> ZOrderError:
    """More than two columns were given for rectangles."""
    return error("ZORDER_RECTANGLE_COLUMNS", columns=_listed(columns))


def not_a_dataframe(value: object) -> ZOrderError:
    """The argument of explain() is not a DataFrame."""
    return error("ZORDER_NOT_A_DATAFRAME", type=type(value).__name__)


def no_columns() -> ZOrderError:
    """executeZOrderBy() was called without columns."""
    return error("ZORDER_NO_COLUMNS")


def not_a_column_name(value: object) -> ZOrderError:
    """An argument of executeZOrderBy() or createSkippingIndex() is not one column or expression."""
    shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    return error("ZORDER_NOT_A_COLUMN_NAME", value=shown)


def not_hours(value: object) -> ZOrderError:
    """The retention passed to vacuum() is not an integer."""
    return error("ZORDER_NOT_HOURS", type=type(value).__name__)


def where_twice() -> ZOrderError:
    """where() was called twice on the same builder."""
    return error("ZORDER_WHERE_TWICE")


def no_workload(table: str) -> ZOrderError:
    """advise() was called without queries or an event log, and no workload has been recorded."""
    return error("ZORDER_NO_WORKLOAD", table=table)


def unreadable_queries(path: str, reason: str) -> ZOrderError:
    """The file of statements is missing or is not text."""
    return error("ZORDER_UNREADABLE_QUERIES", path=path, reason=reason)


def no_event_log(path: str) -> ZOrderError:
    """There is no event log at the path."""
    return error("ZORDER_NO_EVENT_LOG", path=path)


def invalid_limit(name: str, value: object, wanted: str) -> ZOrderError:
    """An argument of advise() is out of range."""
    return error("ZORDER_INVALID_LIMIT", name=name, value=repr(value), wanted=wanted)


# ---- optional packages --------------------------------------------------------------------------


def plot_missing(package: str) -> ZOrderError:
    """A package that pictures or reports need is not installed."""
    return error("ZORDER_PLOT_MISSING", package=package)


def cli_missing(package: str) -> ZOrderError:
    """A package that the command-line tool needs is not installed."""
    return error("ZORDER_CLI_MISSING", package=package)


def sqlglot_missing() -> ZOrderError:
    """sqlglot, which advise() needs to parse SQL, is not installed."""
    return error("ZORDER_SQLGLOT_MISSING")


# ---- tables and stores --------------------------------------------------------------------------


def table_not_found(name: str, in_memory: bool, is_folder: bool) -> ZOrderError:
    """The catalog has no table with the name given on the command line.

    Args:
        in_memory: whether the catalog is in memory, and therefore starts out empty.
        is_folder: whether a folder of that name exists.
    """
    if in_memory and is_folder:
        return error("ZORDER_TABLE_NOT_FOUND.IN_MEMORY_FOLDER", name=name)
    if in_memory:
        return error("ZORDER_TABLE_NOT_FOUND.IN_MEMORY", name=name)
    if is_folder:
        return error("ZORDER_TABLE_NOT_FOUND.FOLDER", name=name)
    return error("ZORDER_TABLE_NOT_FOUND.CATALOG", name=name)


def damaged(path: str, reason: str) -> ZOrderError:
    """A file of pyzorder's cannot be read, and is needed by a command that writes."""
    return error("ZORDER_UNREADABLE_FILE.DAMAGED", path=path, reason=reason)


def conflict(what: str) -> ZOrderError:
    """Another writer changed the table in the meantime.

    Args:
        what: the change that was detected.
    """
    return error("ZORDER_CONFLICT.CHANGED", what=what)


def linked(path: str) -> ZOrderError:
    """A file to be written is reached through a symbolic link, which pyzorder does not follow."""
    return error("ZORDER_SYMBOLIC_LINK.WRITING", path=path)


def linked_data_file(path: str) -> ZOrderError:
    """A data file to copy is reached through a link whose owner does not own the target."""
    return error("ZORDER_SYMBOLIC_LINK.DATA_FILE", path=path)


def used_up_numbers(folder: str) -> ZOrderError:
    """The last run or snapshot in a folder already has the highest possible number."""
    return error("ZORDER_NO_RUN_NUMBER", journal=folder)


def newer_index(folder: str, reason: str) -> ZOrderError:
    """The index is in a format that this version of pyzorder does not support."""
    return error("ZORDER_NEWER_INDEX", folder=folder, reason=reason)


def view_has_no_folder(view: str) -> ZOrderError:
    """A view was given where a table with a folder is needed."""
    return error("ZORDER_VIEW", name=view)


def store_not_writable(folder: str, reason: str) -> ZOrderError:
    """The doctor cannot create a file in the folder.

    Args:
        reason: the store's error message.
    """
    return error("ZORDER_NOT_WRITABLE.FOLDER", folder=folder, reason=reason)


def store_has_two_winners(folder: str) -> ZOrderError:
    """Two writers can both create a file, because the store does not support create-if-absent."""
    return error("ZORDER_UNSUPPORTED_STORE.TWO_WINNERS", folder=folder)
