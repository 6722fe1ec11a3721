"""What the Python side raises: one class, and one sentence for each way the door stays shut.

Errors of a statement (an unknown column, a view, a conflict …) are raised by Spark itself, as its
AnalysisException with a condition that starts with ZORDER_; they are not wrapped.
"""

from __future__ import annotations

from collections.abc import Iterable


class ZOrderError(Exception):
    """A failure at the door to Spark. `condition` names it for programs, the message for people."""

    def __init__(self, condition: str, message: str) -> None:
        super().__init__(f"[{condition}] {message}")
        self.condition = condition


def pyspark_missing() -> ZOrderError:
    """No PySpark in this Python."""
    return ZOrderError(
        "ZORDER_PYSPARK_MISSING",
        "PySpark is not installed for this Python: pip install 'pyzorder[spark]'.",
    )


def unsupported_spark(version: str, supported: Iterable[str]) -> ZOrderError:
    """A Spark that no jar is built for."""
    return ZOrderError(
        "ZORDER_UNSUPPORTED_SPARK",
        f"pyzorder supports Spark {', '.join(supported)}, and this is Spark {version}: "
        "install one of these, or a pyzorder that knows this one.",
    )


def jar_missing(spark: str, expected: str, present: Iterable[str]) -> ZOrderError:
    """The package holds no jar for the Spark that is installed."""
    others = ", ".join(present) or "none at all"
    return ZOrderError(
        "ZORDER_JAR_MISSING",
        f"The jar for Spark {spark} is missing: {expected} (jars beside it: {others}). Install "
        f"pyzorder again in this environment, where it is built for the PySpark it finds: "
        f"PYZORDER_SPARK={spark} pip install --force-reinstall --no-deps pyzorder; "
        "in a clone of the project: python jvm/build.py.",
    )


def connect_builder(extension: str) -> ZOrderError:
    """configure() was given a builder of a Spark Connect client."""
    return ZOrderError(
        "ZORDER_CONNECT_CLIENT",
        "A Spark Connect client cannot add a jar to its server. Start the server with "
        f"--jars <pyzorder's jar> --conf spark.sql.extensions={extension}, and use the client's "
        "session as it is: OPTIMIZE through spark.sql and pyzorder.ZOrderTable works on it.",
    )


def session_running(extension: str) -> ZOrderError:
    """A session runs already, and its extensions cannot change any more."""
    return ZOrderError(
        "ZORDER_SESSION_RUNNING",
        "A Spark session without pyzorder is running already, and extensions are fixed when Spark "
        f"starts: call its stop(), or start it with spark.sql.extensions={extension}, before "
        "pyzorder.configure.",
    )


def jvm_running(jar: str, extension: str) -> ZOrderError:
    """The JVM was started before configure() and does not hold the jar."""
    return ZOrderError(
        "ZORDER_JVM_RUNNING",
        "The JVM behind this Python runs already, without pyzorder's jar on its class path, which "
        "is fixed when it starts. In a notebook restart the kernel and call pyzorder.configure "
        "before the first session; with spark-submit or pyspark add "
        f"--jars {jar} --conf spark.sql.extensions={extension} to the command.",
    )


def jars_overridden(jar: str) -> ZOrderError:
    """PYSPARK_SUBMIT_ARGS names jars, which win over the builder's."""
    return ZOrderError(
        "ZORDER_JARS_OVERRIDDEN",
        "PYSPARK_SUBMIT_ARGS holds --jars, which replaces the jars that pyzorder.configure sets: "
        f"add {jar} to that list, separated by a comma.",
    )


def not_configured(extension: str) -> ZOrderError:
    """The session has no pyzorder in it."""
    return ZOrderError(
        "ZORDER_NOT_CONFIGURED",
        f"This Spark session does not run pyzorder: spark.sql.extensions lacks {extension}. Build "
        "the session with pyzorder.configure(SparkSession.builder).getOrCreate(), or start Spark "
        "with pyzorder's jar and that setting.",
    )


def extension_not_loaded(extension: str) -> ZOrderError:
    """The setting is there, but Spark did not find the class, which it only logs."""
    return ZOrderError(
        "ZORDER_EXTENSION_NOT_LOADED",
        f"spark.sql.extensions names {extension}, but Spark's JVM does not hold that class, so "
        "Spark went on without it: add pyzorder's jar to spark.jars, or build the session with "
        "pyzorder.configure.",
    )


def versions_differ(package: str, jar: str) -> ZOrderError:
    """The jar in the JVM is of another release than the Python package."""
    return ZOrderError(
        "ZORDER_VERSIONS_DIFFER",
        f"This is pyzorder {package} for Python, but the jar in Spark's JVM is pyzorder {jar}: "
        "install the same version on both sides and restart Spark.",
    )


def jar_for_other_spark(jar_spark: str, running: str) -> ZOrderError:
    """The jar in the JVM was compiled against another Spark."""
    return ZOrderError(
        "ZORDER_JAR_FOR_OTHER_SPARK",
        f"pyzorder's jar in Spark's JVM is built for Spark {jar_spark}, but this is Spark "
        f"{running}: use the jar whose name holds spark-{running}.",
    )


def connect_has_no_plan() -> ZOrderError:
    """explain() of a Connect DataFrame."""
    return ZOrderError(
        "ZORDER_CONNECT_EXPLAIN",
        "pyzorder.explain reads a plan inside Spark's JVM, which a Spark Connect client cannot "
        "reach: call df.explain(), whose ZOrderSkipping lines show the files selected, skipped "
        "and unindexed.",
    )


def connect_has_no_layout() -> ZOrderError:
    """A picture or report through a Connect session."""
    return ZOrderError(
        "ZORDER_CONNECT_LAYOUT",
        "Pictures and reports are made of what Spark's JVM knows of a table's files, which a Spark "
        "Connect client cannot reach: use a session of spark-submit, pyspark or a notebook's own, "
        "or look at DESCRIBE SKIPPING INDEX ON the table.",
    )


def plot_missing(package: str) -> ZOrderError:
    """A picture or report without the package that makes it."""
    return ZOrderError(
        "ZORDER_PLOT_MISSING",
        f"Pictures and reports need {package}, which is not installed for this Python: "
        "pip install 'pyzorder[plot]'.",
    )


def no_such_picture(suffix: str) -> ZOrderError:
    """A picture's file that is neither PNG nor SVG."""
    named = f"and not {suffix}" if suffix else "and this name has no suffix"
    return ZOrderError(
        "ZORDER_PICTURE_FORMAT",
        f"Pictures are saved as .png or .svg, by the file's suffix, {named}.",
    )


def too_many_sides(columns: Iterable[str]) -> ZOrderError:
    """Rectangles of three columns."""
    return ZOrderError(
        "ZORDER_RECTANGLE_COLUMNS",
        f"A rectangle has one or two columns, and these are more: {', '.join(columns)}. Name two "
        "of them; pyzorder.plot.depth takes any number, and a report has a picture of each pair.",
    )


def not_a_dataframe(value: object) -> ZOrderError:
    """explain() of something else."""
    return ZOrderError(
        "ZORDER_NOT_A_DATAFRAME",
        f"pyzorder.explain takes a DataFrame, and this is a {type(value).__name__}: for SQL text "
        "pass spark.sql(text).",
    )


def no_columns() -> ZOrderError:
    """executeZOrderBy() without a column."""
    return ZOrderError(
        "ZORDER_NO_COLUMNS",
        "executeZOrderBy needs at least one column to cluster by; to merge small files without "
        "clustering call executeCompaction().",
    )


def not_a_column_name(value: object) -> ZOrderError:
    """executeZOrderBy() or createSkippingIndex() of something that names no one column."""
    shown = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    return ZOrderError(
        "ZORDER_NOT_A_COLUMN_NAME",
        f"Columns are named one by one, as text, and this is {shown}: write "
        "executeZOrderBy('a', 'b.c'), and a name with other signs in it in back-quotes.",
    )


def not_hours(value: object) -> ZOrderError:
    """vacuum() with a retention that is no whole number."""
    return ZOrderError(
        "ZORDER_NOT_HOURS",
        f"vacuum takes a whole number of hours, and this is a {type(value).__name__}: write "
        "vacuum(24).",
    )


def where_twice() -> ZOrderError:
    """where() called twice on one builder."""
    return ZOrderError(
        "ZORDER_WHERE_TWICE",
        "where was called twice: give one condition, joined with AND.",
    )


def cli_missing(package: str) -> ZOrderError:
    """The command line without the packages it is made with."""
    return ZOrderError(
        "ZORDER_CLI_MISSING",
        f"The command line needs {package}, which is not installed: pip install 'pyzorder[cli]'.",
    )


def table_not_found(name: str, in_memory: bool, is_folder: bool) -> ZOrderError:
    """A name on the command line that the catalog does not know."""
    hints = []
    if is_folder:
        hints.append(f"for the folder of that name write ./{name}")
    if in_memory:
        hints.append(
            "this session's catalog is in memory and knows no tables of other sessions: add "
            "--hive, with --metastore or --warehouse if need be, or name the table's folder"
        )
    return ZOrderError(
        "ZORDER_TABLE_NOT_FOUND",
        f"The catalog has no table {name}: {'; '.join(hints) or 'look at SHOW TABLES'}.",
    )


def java_missing(program: str | None, spark: str, needed: int) -> ZOrderError:
    """No Java where Spark looks for it."""
    where = f"{program} does not run" if program else "there is none on PATH"
    return ZOrderError(
        "ZORDER_JAVA_MISSING",
        f"Spark {spark} needs Java {needed} or later, and {where}: install one and set JAVA_HOME "
        "to its folder.",
    )


def java_too_old(program: str, found: str, spark: str, needed: int) -> ZOrderError:
    """A Java that Spark does not run on."""
    return ZOrderError(
        "ZORDER_JAVA_TOO_OLD",
        f"Spark {spark} needs Java {needed} or later, and {program} is Java {found}: set JAVA_HOME "
        "to the folder of a newer one.",
    )


def view_has_no_folder(view: str) -> ZOrderError:
    """A view where the folder of a table is asked for."""
    return ZOrderError("ZORDER_VIEW", f"{view} is a view: name the table that it reads.")


def store_not_writable(folder: str, said: str) -> ZOrderError:
    """A folder in which the doctor cannot make a file. `said`: by the store."""
    return ZOrderError(
        "ZORDER_NOT_WRITABLE",
        f"No file can be made in {folder} ({said}): make the folder if there is none, or get the "
        "right to write there.",
    )


def store_has_two_winners(folder: str) -> ZOrderError:
    """A store that makes one file twice."""
    return ZOrderError(
        "ZORDER_UNSUPPORTED_STORE",
        f"The store of {folder} made a file that was there already, so that two writers could both "
        "believe they hold a table: keep tables on HDFS, S3 (s3a) or a local disk.",
    )


def jvm_gone(what: str) -> ZOrderError:
    """The JVM ended under a statement."""
    return ZOrderError(
        "ZORDER_JVM_GONE",
        f"Spark's JVM ended while {what} ran, killed or out of memory: no row is lost, and the "
        "next writing command on the table finishes or undoes what was begun. Run it again with "
        "more --conf spark.driver.memory, and with --log FILE to see what Spark says.",
    )


def sqlglot_missing() -> ZOrderError:
    """advise() without its SQL parser."""
    return ZOrderError(
        "ZORDER_SQLGLOT_MISSING",
        "pyzorder.advisor reads SQL with sqlglot, which is not installed for this Python: "
        "pip install 'pyzorder[advisor]'.",
    )


def connect_has_no_advisor() -> ZOrderError:
    """advise() on a Connect session."""
    return ZOrderError(
        "ZORDER_CONNECT_ADVISOR",
        "pyzorder.advisor tries layouts inside Spark's JVM, which a Spark Connect client cannot "
        "reach: run it in a session on the server, or in a local one that sees the same tables.",
    )


def no_workload() -> ZOrderError:
    """advise() without queries."""
    return ZOrderError(
        "ZORDER_NO_WORKLOAD",
        "The advisor needs the queries to advise for: queries, a file of SQL statements or a list "
        "of them, or event_log, a folder of Spark's event logs (spark.eventLog.dir).",
    )


def unreadable_queries(path: str, why: str) -> ZOrderError:
    """The file of statements is not there, or no text."""
    return ZOrderError(
        "ZORDER_UNREADABLE_QUERIES",
        f"The queries in {path} cannot be read ({why}): give a UTF-8 text file of SQL statements, "
        "with a semicolon after each.",
    )


def no_event_log(path: str) -> ZOrderError:
    """No event log where one should be."""
    return ZOrderError(
        "ZORDER_NO_EVENT_LOG",
        f"There is no readable Spark event log at {path}: give the folder that spark.eventLog.dir "
        "names, one application's eventlog_v2_ folder in it, or a single log.",
    )


def invalid_limit(name: str, value: object, wanted: str) -> ZOrderError:
    """An argument of advise() that is out of range."""
    return ZOrderError("ZORDER_INVALID_LIMIT", f"{name} is {value!r}: it must be {wanted}.")
