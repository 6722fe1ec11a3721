"""The only module that talks to the JVM; all of it but `is_connect` needs a classic session."""

from __future__ import annotations

import json
import os
import zipfile
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXTENSION = "io.pyzorder.ZOrderExtensions"


def is_connect(value: Any) -> bool:
    """Whether a session or DataFrame is a Spark Connect client's."""
    return ".connect." in f"{type(value).__module__}."


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
    found: list[dict[str, Any]] = json.loads(jvm.io.pyzorder.api.PythonApi.explain(execution))
    return found
