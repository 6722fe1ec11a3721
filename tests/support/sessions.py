"""The tests' Spark sessions: small, with pyzorder, and local by default.

Processes that tests start inherit these environment variables: PYZORDER_TEST_MASTER is the
Spark master (set by `make test-cluster`), PYZORDER_TEST_REMOTE the address of a Spark Connect
server to use instead (`make test-connect`), and PYZORDER_TEST_SETTINGS holds further settings as
JSON (`make test-hdfs` and `make test-s3`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyzorder
from pyzorder import bridge

#: For every JVM that tests start. In short-lived JVMs, optimizing compilation takes longer than it
#: saves, and parallel garbage collection takes cores from other tests.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: The archive of Spark's classes, if `tests.support.programs.archive` has created it.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

#: Options for every JVM that tests start.
SUBMIT_OPTIONS = (
    f"{JVM_OPTIONS} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else JVM_OPTIONS
)


def session(threads: int = 1, memory: str = "1g", **settings: str) -> SparkSession:
    """A session with these settings, in whose names two underscores stand for a dot. A remote
    server keeps its own settings."""
    remote = os.environ.get("PYZORDER_TEST_REMOTE")
    if remote is not None:
        return SparkSession.builder.remote(remote).getOrCreate()
    master = os.environ.get("PYZORDER_TEST_MASTER", f"local[{threads}]")
    builder = (
        SparkSession.builder.master(master)
        .appName("pyzorder-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", "4")
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    for name, value in json.loads(os.environ.get("PYZORDER_TEST_SETTINGS", "{}")).items():
        builder = builder.config(name, value)
    return pyzorder.configure(builder).getOrCreate()


def zorder_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of pyzorder that are set in the session."""
    if hasattr(spark.conf, "getAll"):
        settings = spark.conf.getAll
    else:  # Spark 3.5
        settings = {row[0]: row[1] for row in spark.sql("SET").collect()}
    return {name: value for name, value in settings.items() if name.startswith("spark.sql.zorder.")}


def initial_settings(spark: SparkSession) -> dict[str, str]:
    """The settings of pyzorder that the session began with, or none for Spark Connect."""
    if bridge.is_connect(spark):
        return {}
    settings = dict(spark.sparkContext.getConf().getAll())
    return {name: value for name, value in settings.items() if name.startswith("spark.sql.zorder.")}
