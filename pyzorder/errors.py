"""What the Python side raises: a function for each failure, which says what a caller must know.

The sentences are in error_conditions.json, the catalogue that pyzorder's jar and the documentation
read too. Errors of a statement (an unknown column, a view, a conflict …) are raised by Spark
itself, as its AnalysisException with a condition that starts with ZORDER_; they are not wrapped.
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
    """A failure that Spark does not raise itself. `condition` and `sql_state` name it for programs,
    the message for people."""

    def __init__(self, condition: str, message: str, sql_state: str = "") -> None:
        super().__init__(f"[{condition}] {message}")
        self.condition = condition
        self.sql_state = sql_state


@cache
def conditions() -> dict[str, Any]:
    """The catalogue: for each condition its `sqlState`, and either its `message`, a list of
    sentences, or `variants`, a message for each reason to raise it."""
    found: dict[str, Any] = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return found


def error(name: str, /, **parameters: object) -> ZOrderError:
    """The error of a condition, or of a variant of one, as ZORDER_NO_SPACE.FULL.

    Every placeholder of its sentences needs a parameter, and every parameter a placeholder.
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
    """A path may hold a user's password or keys, as `s3a://key:secret@bucket`: none is told."""
    return re.sub(r"://[^/@\s]*@", "://***@", text)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


# ---- Spark, its JVM and the jar -----------------------------------------------------------------


def pyspark_missing() -> ZOrderError:
    """No PySpark in this Python."""
    return error("ZORDER_PYSPARK_MISSING")


def unsupported_spark(version: str, supported: Iterable[str]) -> ZOrderError:
    """A Spark that no jar is built for."""
    return error("ZORDER_UNSUPPORTED_SPARK", version=version, supported=_listed(supported))


def jar_missing(spark: str, expected: str, present: Iterable[str]) -> ZOrderError:
    """The package holds no jar for the Spark that is installed."""
    others = _listed(present) or "none"
    return error("ZORDER_JAR_MISSING", spark=spark, expected=expected, present=others)


def connect_builder(extension: str) -> ZOrderError:
    """configure() was given a builder of a Spark Connect client."""
    return error("ZORDER_CONNECT_CLIENT", extension=extension)


def session_running(extension: str) -> ZOrderError:
    """A session runs already, and its extensions cannot change any more."""
    return error("ZORDER_SESSION_RUNNING", extension=extension)


def jvm_running(jar: str, extension: str) -> ZOrderError:
    """The JVM was started before configure() and does not hold the jar."""
    return error("ZORDER_JVM_RUNNING", jar=jar, extension=extension)


def jars_overridden(jar: str) -> ZOrderError:
    """PYSPARK_SUBMIT_ARGS names jars, which win over the builder's."""
    return error("ZORDER_JARS_OVERRIDDEN", jar=jar)


def not_configured(extension: str) -> ZOrderError:
    """The session has no pyzorder in it."""
    return error("ZORDER_NOT_CONFIGURED", extension=extension)


def extension_not_loaded(extension: str) -> ZOrderError:
    """The setting is there, but Spark did not find the class, which it only logs."""
    return error("ZORDER_EXTENSION_NOT_LOADED", extension=extension)


def versions_differ(package: str, jar: str) -> ZOrderError:
    """The jar in the JVM is of another release than the Python package."""
    return error("ZORDER_VERSIONS_DIFFER", package=package, jar=jar)


def jar_for_other_spark(built: str, running: str) -> ZOrderError:
    """The jar in the JVM was compiled against another Spark."""
    return error("ZORDER_JAR_FOR_OTHER_SPARK", built=built, running=running)


def java_missing(program: str | None, spark: str, needed: int) -> ZOrderError:
    """No Java where Spark looks for it."""
    if program is None:
        return error("ZORDER_JAVA_MISSING.NONE", spark=spark, needed=needed)
    return error("ZORDER_JAVA_MISSING.FAILED", spark=spark, needed=needed, program=program)


def java_too_old(program: str, found: str, spark: str, needed: int) -> ZOrderError:
    """A Java that Spark does not run on."""
    return error("ZORDER_JAVA_TOO_OLD", program=program, found=found, spark=spark, needed=needed)


def spark_not_started(master: str | None, reason: str) -> ZOrderError:
    """Spark itself failed at its start. `master`: where it was to run, if that was asked for."""
    if master is None:
        return error("ZORDER_SPARK_NOT_STARTED.HERE", reason=reason)
    return error("ZORDER_SPARK_NOT_STARTED.AT", master=master, reason=reason)


def jvm_not_started(reason: str) -> ZOrderError:
    """The JVM ended before it could be reached. `reason`: the line of its output that says why."""
    return error("ZORDER_JVM_NOT_STARTED", reason=reason)


def jvm_gone(what: str) -> ZOrderError:
    """The JVM ended under a statement."""
    return error("ZORDER_JVM_GONE", what=what)


# ---- Spark Connect ------------------------------------------------------------------------------


def no_connect_server(address: str, reason: str) -> ZOrderError:
    """Nothing listens where a Spark Connect server should."""
    return error("ZORDER_NO_CONNECT_SERVER", address=address, reason=reason)


def connect_has_no_plan() -> ZOrderError:
    """explain() of a Connect DataFrame."""
    return error("ZORDER_CONNECT_EXPLAIN")


def connect_has_no_layout() -> ZOrderError:
    """A picture or report through a Connect session."""
    return error("ZORDER_CONNECT_LAYOUT")


def connect_has_no_advisor() -> ZOrderError:
    """advise() on a Connect session."""
    return error("ZORDER_CONNECT_ADVISOR")


# ---- arguments ----------------------------------------------------------------------------------


def no_such_picture(suffix: str) -> ZOrderError:
    """A picture's file that is neither PNG nor SVG."""
    if not suffix:
        return error("ZORDER_PICTURE_FORMAT.NO_SUFFIX")
    return error("ZORDER_PICTURE_FORMAT.SUFFIX", suffix=suffix)


def too_many_sides(columns: Iterable[str]) -> ZOrderError:
    """Rectangles of three columns."""
    return error("ZORDER_RECTANGLE_COLUMNS", columns=_listed(columns))


def not_a_dataframe(value: object) -> ZOrderError:
    """explain() of something else."""
    return error("ZORDER_NOT_A_DATAFRAME", type=type(value).__name__)


def no_columns() -> ZOrderError:
    """executeZOrderBy() without a column."""
    return error("ZORDER_NO_COLUMNS")


def not_a_column_name(value: object) -> ZOrderError:
    """executeZOrderBy() or createSkippingIndex() of something that names no one column."""
    shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    return error("ZORDER_NOT_A_COLUMN_NAME", value=shown)


def not_hours(value: object) -> ZOrderError:
    """vacuum() with a retention that is no whole number."""
    return error("ZORDER_NOT_HOURS", type=type(value).__name__)


def where_twice() -> ZOrderError:
    """where() called twice on one builder."""
    return error("ZORDER_WHERE_TWICE")


def no_workload() -> ZOrderError:
    """advise() without queries."""
    return error("ZORDER_NO_WORKLOAD")


def unreadable_queries(path: str, reason: str) -> ZOrderError:
    """The file of statements is not there, or no text."""
    return error("ZORDER_UNREADABLE_QUERIES", path=path, reason=reason)


def no_event_log(path: str) -> ZOrderError:
    """No event log where one should be."""
    return error("ZORDER_NO_EVENT_LOG", path=path)


def invalid_limit(name: str, value: object, wanted: str) -> ZOrderError:
    """An argument of advise() that is out of range."""
    return error("ZORDER_INVALID_LIMIT", name=name, value=repr(value), wanted=wanted)


# ---- optional packages --------------------------------------------------------------------------


def plot_missing(package: str) -> ZOrderError:
    """A picture or report without the package that makes it."""
    return error("ZORDER_PLOT_MISSING", package=package)


def cli_missing(package: str) -> ZOrderError:
    """The command line without the packages it is made with."""
    return error("ZORDER_CLI_MISSING", package=package)


def sqlglot_missing() -> ZOrderError:
    """advise() without its SQL parser."""
    return error("ZORDER_SQLGLOT_MISSING")


# ---- tables and stores --------------------------------------------------------------------------


def table_not_found(name: str, in_memory: bool, is_folder: bool) -> ZOrderError:
    """A name on the command line that the catalog does not know."""
    if in_memory and is_folder:
        return error("ZORDER_TABLE_NOT_FOUND.IN_MEMORY_FOLDER", name=name)
    if in_memory:
        return error("ZORDER_TABLE_NOT_FOUND.IN_MEMORY", name=name)
    if is_folder:
        return error("ZORDER_TABLE_NOT_FOUND.FOLDER", name=name)
    return error("ZORDER_TABLE_NOT_FOUND.CATALOG", name=name)


def conflict(what: str) -> ZOrderError:
    """Others changed the table meanwhile. `what`: they did."""
    return error("ZORDER_CONFLICT.CHANGED", what=what)


def linked(path: str) -> ZOrderError:
    """pyzorder makes no links, and follows none when it writes."""
    return error("ZORDER_SYMBOLIC_LINK.WRITING", path=path)


def used_up_numbers(folder: str) -> ZOrderError:
    """The last run or snapshot in a folder has the greatest number there is."""
    return error("ZORDER_NO_RUN_NUMBER", journal=folder)


def view_has_no_folder(view: str) -> ZOrderError:
    """A view where the folder of a table is asked for."""
    return error("ZORDER_VIEW", name=view)


def store_not_writable(folder: str, reason: str) -> ZOrderError:
    """A folder in which the doctor cannot make a file. `reason`: what the store said."""
    return error("ZORDER_NOT_WRITABLE.FOLDER", folder=folder, reason=reason)


def store_has_two_winners(folder: str) -> ZOrderError:
    """A store that makes one file twice."""
    return error("ZORDER_UNSUPPORTED_STORE.TWO_WINNERS", folder=folder)
