"""The only module that talks to the JVM; all of it but `is_connect` needs a classic session."""

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
"""What the tag of a job begins with that is a step of a statement (JobDescription.scala)."""


@dataclass(frozen=True)
class StageStatus:
    """How far a stage of a Spark job is; `rows` are those read by tasks that have ended."""

    tasks: int
    ended: int
    rows: int


@dataclass(frozen=True)
class JobStatus:
    """How far a Spark job is; `step` is what it does for a statement, None: the job is Spark's."""

    number: int
    step: str | None
    running: bool
    stages: tuple[StageStatus, ...]


def is_connect(value: Any) -> bool:
    """Whether a session or DataFrame is a Spark Connect client's."""
    return ".connect." in f"{type(value).__module__}."


def is_connect_only() -> bool:
    """Whether the PySpark here is the package for Connect clients, which starts no JVM."""
    try:
        from pyspark.util import is_remote_only
    except ImportError:  # before Spark 4
        return False
    return bool(is_remote_only())


def running_jvm() -> Any | None:
    """The JVM that this Python already talks to, or that spark-submit started for it; else None."""
    from pyspark import SparkContext

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
    return SparkContext._jvm


def active_extensions() -> str | None:
    """`spark.sql.extensions` of the running classic session; None when none runs."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return None
    return context.getConf().get("spark.sql.extensions", "") or ""


def manifest(jvm: Any) -> dict[str, str] | None:
    """Main attributes of the manifest of the jar that holds pyzorder in `jvm`; None without one."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    resource = EXTENSION.replace(".", "/") + ".class"
    url = None if loader is None else loader.getResource(resource)
    if url is None:
        return None
    if url.getProtocol() != "jar":  # classes in a folder: nothing to compare
        return {}
    jar = unquote(url.getPath().split("!")[0].removeprefix("file:"))
    with zipfile.ZipFile(jar) as archive:
        text = archive.read("META-INF/MANIFEST.MF").decode()
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def session_manifest(spark: SparkSession) -> dict[str, str] | None:
    """`manifest` of the JVM of a classic session."""
    return manifest(spark.sparkContext._jvm)


def explain(df: DataFrame) -> list[dict[str, Any]]:
    """What skipping does to each scan of `df`, as the JVM describes it."""
    jvm: Any = df.sparkSession.sparkContext._jvm
    execution = df._jdf.queryExecution()
    found: list[dict[str, Any]] = json.loads(jvm.io.pyzorder.api.ExplainApi.explain(execution))
    return found


def launch_jvm(options: dict[str, Any], output: IO[bytes]) -> None:
    """Starts the JVM with a session's options; all that it prints goes to `output`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf()
    for key, value in options.items():
        conf.set(key, str(value))
    gateway = launch_gateway(conf, {"stdout": output, "stderr": output})
    SparkContext._ensure_initialized(gateway=gateway)


def is_jvm_gone(failure: Exception) -> bool:
    """Whether a call failed because no JVM answers any more, not because the JVM said so."""
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(failure, Py4JError) and not isinstance(failure, Py4JJavaError)


def jobs(spark: SparkSession, group: str, but: set[int]) -> list[JobStatus]:
    """The jobs of a group so far, by their numbers, without some; those forgotten are left out."""
    from py4j.protocol import Py4JJavaError

    context = spark.sparkContext
    store: Any = context._jsc.sc().statusStore()
    found = []
    for number in sorted(set(context.statusTracker().getJobIdsForGroup(group)) - but):
        try:
            found.append(job_status(store, number))
        except Py4JJavaError:  # Spark remembers only so many jobs and stages
            continue
    return found


def job_status(store: Any, number: int) -> JobStatus:
    """One job, out of Spark's AppStatusStore."""
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
    """The step of a statement that a job's tags name."""
    return next((tag.removeprefix(STEP_TAG) for tag in tags if tag.startswith(STEP_TAG)), None)


def tagged_jobs(spark: SparkSession, tag: str) -> list[JobStatus]:
    """The jobs so far of a Connect client's statement that has this tag, as its server knows."""
    found: dict[int, JobStatus] = {}
    for row in spark.sql(f"SELECT * FROM statement_progress('{tag}')").collect():
        stage = StageStatus(row.tasks, row.tasks_ended, row.rows)
        before = found[row.job].stages if row.job in found else ()
        found[row.job] = JobStatus(row.job, row.step, row.running, (*before, stage))
    return list(found.values())


def require_query(spark: SparkSession, sql: str) -> None:
    """Raises Spark's ParseException unless the text is a query, which changes nothing."""
    spark._jsparkSession.sessionState().sqlParser().parseQuery(sql)


def require_condition(spark: SparkSession, sql: str) -> None:
    """Raises Spark's ParseException unless the text is one expression and nothing after it."""
    spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)


def creates_if_absent(spark: SparkSession, path: str) -> bool:
    """Whether a file can be made at `path`, and then not a second time; takes it away again.

    Raises the JVM's exception when the store cannot do either.
    """
    jvm: Any = spark.sparkContext._jvm
    return bool(jvm.io.pyzorder.api.StoreApi.createsIfAbsent(jsession(spark), path))


def jsession(spark: SparkSession) -> Any:
    """The JVM's session of a classic one."""
    return spark._jsparkSession


def layout(spark: SparkSession, target: str, columns: list[str]) -> dict[str, Any]:
    """What each data file of a table covers of the columns, as the JVM describes it."""
    found: dict[str, Any] = json.loads(
        _layout_api(spark).layout(spark._jsparkSession, target, _java_list(spark, columns))
    )
    return found


def verdict(spark: SparkSession, target: str, columns: list[str]) -> dict[str, str]:
    """Whether an OPTIMIZE by these columns pays: `kind` and `sentence` of the JVM's verdict.

    No columns: an OPTIMIZE that names none.
    """
    found: dict[str, str] = json.loads(
        _layout_api(spark).verdict(spark._jsparkSession, target, _java_list(spark, columns))
    )
    return found


def rows(spark: SparkSession, target: str) -> DataFrame:
    """The rows of a table that is named as `layout` takes it."""
    from pyspark.sql import DataFrame

    return DataFrame(_layout_api(spark).rows(spark._jsparkSession, target), spark)


def box(df: DataFrame, columns: list[str]) -> list[list[Any]]:
    """For each column the limits that the query's filters set, None: none."""
    spark = df.sparkSession
    execution = df._jdf.queryExecution()
    found: list[list[Any]] = json.loads(
        _layout_api(spark).box(execution, _java_list(spark, columns))
    )
    return found


def event_log(spark: SparkSession, path: str) -> Any:
    """Spark's event logs at or below a path, as org.apache.spark.sql.pyzorder.EventLogs."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.spark.sql.pyzorder.EventLogs(jsession(spark), path)


def advisor(spark: SparkSession, target: str) -> Any:
    """A table that layouts are tried on, as io.pyzorder.api.AdvisorApi."""
    jvm: Any = spark.sparkContext._jvm
    return jvm.io.pyzorder.api.AdvisorApi(jsession(spark), target)


def _layout_api(spark: SparkSession) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.io.pyzorder.api.LayoutApi


def _java_list(spark: SparkSession, values: list[str]) -> Any:
    jvm: Any = spark.sparkContext._jvm
    java = jvm.java.util.ArrayList()
    for value in values:
        java.add(value)
    return java
