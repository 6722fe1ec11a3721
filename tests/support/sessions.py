"""The Spark sessions that tests start: small, on this machine alone, with pyzorder in them.

Variables of the environment, which processes that tests start inherit: PYZORDER_TEST_MASTER names
another master than a local one (`make test-cluster` sets it), PYZORDER_TEST_REMOTE a Spark Connect
server instead (`make test-connect`), PYZORDER_TEST_SETTINGS holds further settings as JSON (`make
test-hdfs` and `make test-s3`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyzorder

#: For every Spark that a test starts: in short lives, to compile well takes longer than to run, and
#: to collect garbage in several threads takes them from other tests.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

#: The classes that Spark loads, if `tests.support.programs.archive` has put them there.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

#: The options of every JVM that tests start.
SUBMIT_OPTIONS = (
    f"{JVM_OPTIONS} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else JVM_OPTIONS
)


def session(threads: int = 1, memory: str = "1g", **settings: str) -> SparkSession:
    """A session with these settings, two underscores for a dot; a server has its own."""
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
    """What is set of pyzorder's settings in a session."""
    if hasattr(spark.conf, "getAll"):
        settings = spark.conf.getAll
    else:  # Spark 3.5
        settings = {row[0]: row[1] for row in spark.sql("SET").collect()}
    return {name: value for name, value in settings.items() if name.startswith("spark.sql.zorder.")}
