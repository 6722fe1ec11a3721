"""The only module that calls the JVM. Most of its functions need a classic session."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXTENSION = "io.pyzorder.ZOrderExtensions"

STEP_TAG = "pyzorder-step: "
"""Prefix of the job tag that names a step of a statement (JobDescription.scala)."""


@dataclass(frozen=True)
class StageStatus:
    """Progress of a stage of a Spark job. `rows` is the number of rows read so far."""

    tasks: int
    ended: int
    rows: int


@dataclass(frozen=True)
class JobStatus:
    """Progress of a Spark job.

    `step` is the name of the step that runs the job, or None if the job's tags do not name a step.
    """

    number: int
    step: str | None
    running: bool
    stages: tuple[StageStatus, ...]


def is_connect(value: Any) -> bool:
    """Whether a session or DataFrame belongs to a Spark Connect client."""
    return ".connect." in f"{type(value).__module__}."


def is_connect_only() -> bool:
    """Whether the installed PySpark is the package for Connect clients, which has no JVM."""
    try:
        from pyspark.util import is_remote_only
    except ImportError:  # before Spark 4
        return False
    return bool(is_remote_only())


def running_jvm() -> Any | None:
    """Returns the JVM that this process is connected to, or None.

    If spark-submit started a JVM for this process, connects to that JVM first.
    """
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
    return SparkContext._jvm


def active_extensions() -> str | None:
    """Returns `spark.sql.extensions` of the running classic session, or None if none is running."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None
    return context.getConf().get("spark.sql.extensions", "") or ""


def manifest(jvm: Any) -> dict[str, str] | None:
    """Returns the main attributes in the manifest of the pyzorder jar that `jvm` has loaded.

    Returns None if `jvm` does not contain pyzorder, and an empty dict if pyzorder's classes are not
    in a jar.
    """
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    resource = EXTENSION.replace(".", "/") + ".class"
    url = None if loader is None else loader.getResource(resource)
    if url is None:
        return None
    if url.getProtocol() != "jar":  # the classes are in a folder, which has no manifest
        return {}
    jar = unquote(url.getPath().split("!")[0].removeprefix("file:"))
    with zipfile.ZipFile(jar) as archive:
        text = archive.read("META-INF/MANIFEST.MF").decode()
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def session_manifest(spark: SparkSession) -> dict[str, str] | None:
    """Returns the result of `manifest` for the JVM of a classic session."""
    return manifest(spark.sparkContext._jvm)


def explain(df: DataFrame) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the JVM's description of data skipping in each scan of `df`, and the names of the
    tables whose scans Spark removed from the plan while the query ran."""
    jvm: Any = df.sparkSession.sparkContext._jvm
    execution = df._jdf.queryExecution()
    found = json.loads(jvm.io.pyzorder.api.ExplainApi.explain(execution))
    return found["scans"], found["removed"]


def launch_jvm(options: dict[str, Any], output: IO[bytes]) -> None:
    """Starts the JVM with a session's options, and sends everything it prints to `output`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf()
    for key, value in options.items():
        conf.set(key, str(value))
    gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
    SparkContext._ensure_initialized(gateway=gateway)


def is_jvm_gone(failure: Exception) -> bool:
    """Whether a call failed because the JVM no longer responds.

    Exceptions thrown in the JVM do not count.
    """
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(failure, Py4JError) and not isinstance(failure, Py4JJavaError)


def jobs(spark: SparkSession, group: str, but: set[int]) -> list[JobStatus]:
    """Returns the jobs that have been started in a job group so far, ordered by number.

    Omits the jobs in `but`, and jobs that Spark has already dropped from its status store.
    """
    from py4j.protocol import Py4JJavaError

    context = spark.sparkContext
    store: Any = context._jsc.sc().statusStore()
    found = []
    for number in sorted(set(context.statusTracker().getJobIdsForGroup(group)) - but):
        try:
            found.append(job_status(store, number))
        except Py4JJavaError:  # Spark keeps only a limited number of jobs and stages
            continue
    return found


def job_status(store: Any, number: int) -> JobStatus:
    """Reads the progress of a job from Spark's AppStatusStore."""
    job = store.job(number)
    stages = []
    for index in range(job.stageIds().size()):
        stage = store.lastStageAttempt(job.stageIds().apply(index))
        if stage.status().toString() != "SKIPPED":
            rows = stage.inputRecords() + stage.shuffleReadRecords()
            stages.append(StageStatus(stage.numTasks(), stage.numCompleteTasks(), rows))
    return JobStatus(
        number=number,
        step=step_in([job.jobTags().apply(i) for i in range(job.jobTags().size())]),
        running=job.status().toString() == "RUNNING",
        stages=tuple(stages),
    )


def step_in(tags: list[str]) -> str | None:
    """Returns the step that a job's tags name, or None if they do not name one."""
    return next((tag.removeprefix(STEP_TAG) for tag in tags if tag.startswith(STEP_TAG)), None)


def tagged_jobs(spark: SparkSession, tag: str) -> list[JobStatus]:
    """Returns the jobs that a Connect server has started so far for the statement with this tag."""
    found: dict[int, JobStatus] = {}
    for row in spark.sql(f"SELECT * FROM statement_progress('{tag}')").collect():
        stage = StageStatus(row.tasks, row.tasks_ended, row.rows)
        before = found[row.job].stages if row.job in found else ()
        found[row.job] = JobStatus(row.job, row.step, row.running, (*before, stage))
    return list(found.values())


def require_query(spark: SparkSession, sql: str) -> None:
    """Raises Spark's ParseException if the text is not a query, for example if it is a command."""
    spark._jsparkSession.sessionState().sqlParser().parseQuery(sql)


def require_condition(spark: SparkSession, sql: str) -> None:
    """Raises Spark's ParseException unless the text is a single expression."""
    spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)


def creates_if_absent(spark: SparkSession, path: str) -> bool:
    """Creates a file at `path`, and returns whether the store refuses to create it again.

    Deletes the file afterwards. Raises the JVM's exception if the file cannot be created or
    deleted.
    """
    jvm: Any = spark.sparkContext._jvm
    return bool(jvm.io.pyzorder.api.StoreApi.createsIfAbsent(jsession(spark), path))


def jsession(spark: SparkSession) -> Any:
    """Returns the JVM object of a classic session."""
    return spark._jsparkSession


def layout(spark: SparkSession, target: str, columns: list[str]) -> dict[str, Any]:
    """Returns the JVM's description of the ranges of values that each data file covers.

    `target` is written as in skipping_index('…').
    """
    found: dict[str, Any] = json.loads(
        _layout_api(spark).layout(spark._jsparkSession, target, _java_list(spark, columns))
    )
    return found


def verdict(spark: SparkSession, target: str, columns: list[str]) -> dict[str, str]:
    """Returns the `kind` and `sentence` of the JVM's verdict on whether OPTIMIZE would pay off.

    Args:
        columns: the columns in ZORDER BY; empty for an OPTIMIZE without ZORDER BY.
    """
    found: dict[str, str] = json.loads(
        _layout_api(spark).verdict(spark._jsparkSession, target, _java_list(spark, columns))
    )
    return found


def outlook(spark: SparkSession, target: str) -> dict[str, Any]:
    """Returns the JVM's description of what an OPTIMIZE without ZORDER BY would do to a table."""
    jvm: Any = spark.sparkContext._jvm
    found: dict[str, Any] = json.loads(
        jvm.io.pyzorder.api.MaintenanceApi.outlook(jsession(spark), target)
    )
    return found


def tables_below(spark: SparkSession, path: str) -> list[str]:
    """Returns the paths of the tables with a `_zorder` folder at or below a folder."""
    jvm: Any = spark.sparkContext._jvm
    found: list[str] = json.loads(
        jvm.io.pyzorder.api.MaintenanceApi.tablesBelow(jsession(spark), path)
    )
    return found


def rows(spark: SparkSession, target: str) -> DataFrame:
    """Returns the rows of a table. `target` is written as in skipping_index('…')."""
    from pyspark.sql import DataFrame

    return DataFrame(_layout_api(spark).rows(spark._jsparkSession, target), spark)


def box(df: DataFrame, columns: list[str]) -> list[list[Any]]:
    """Returns the lower and upper limits that a query's filters set on each column.

    A limit is None if no filter sets it.
    """
    spark = df.sparkSession
    execution = df._jdf.queryExecution()
    found: list[list[Any]] = json.loads(
        _layout_api(spark).box(execution, _java_list(spark, columns))
    )
    return found


def event_log(spark: SparkSession, path: str) -> Any:
    """Returns an org.apache.spark.sql.pyzorder.EventLogs for the event logs at or below a path."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.sql.pyzorder.EventLogs(jsession(spark), path)


def advisor(spark: SparkSession, target: str) -> Any:
    """Returns an io.pyzorder.api.AdvisorApi, which evaluates layouts of a table."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.io.pyzorder.api.AdvisorApi(jsession(spark), target)


def clear_workload(spark: SparkSession, target: str) -> None:
    """Deletes the workload that sessions have recorded for a table."""
    jvm: Any = spark.sparkContext._jvm
    jvm.io.pyzorder.api.WorkloadApi.clear(jsession(spark), target)


def flush_workload(spark: SparkSession) -> None:
    """Writes the workload that this application has recorded, without waiting for the timer."""
    context: Any = spark.sparkContext
    context._jsc.sc().listenerBus().waitUntilEmpty()
    context._jvm.io.pyzorder.api.WorkloadApi.flush(jsession(spark))


def _layout_api(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.io.pyzorder.api.LayoutApi


def _java_list(spark: SparkSession, values: list[str]) -> Any:
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.util.ArrayList()
    for value in values:
        java.add(value)
    return java
