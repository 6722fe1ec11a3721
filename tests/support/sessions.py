"""Creates small Spark sessions with pyzorder. By default, the sessions are local.

Three environment variables change how sessions are created. They also apply to processes that tests
start. PYZORDER_TEST_MASTER is the Spark master (set by `make test-cluster`). PYZORDER_TEST_REMOTE
is the address of a Spark Connect server to use instead (`make test-connect`).
PYZORDER_TEST_SETTINGS contains additional settings as JSON (`make test-hdfs` and `make test-s3`).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import pyzorder
from pyzorder import bridge

#: JVM options that make tests faster. In short-lived JVMs, the optimizing compiler takes more time
#: than it saves. Parallel garbage collection would take cores from other tests. Without a larger code
#: cache, the JVM stops compiling after a few hundred tests and interprets all remaining code.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

#: The archive of Spark's classes. `tests.support.programs.archive` creates it.
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"

#: Options for every JVM that tests start.
SUBMIT_OPTIONS = (
    f"{JVM_OPTIONS} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else JVM_OPTIONS
)


def session(threads: int = 1, memory: str = "1g", **settings: str) -> SparkSession:
    """Creates a session with the given settings. In their names, two underscores stand for a dot.
    With a remote server, the settings are ignored."""
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
        # By default, each broadcast table takes a page of up to 64 MiB.
        .config("spark.buffer.pageSize", "1m")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    for name, value in json.loads(os.environ.get("PYZORDER_TEST_SETTINGS", "{}")).items():
        builder = builder.config(name, value)
    return pyzorder.configure(builder).getOrCreate()


def zorder_settings(spark: SparkSession) -> dict[str, str]:
    """The pyzorder settings that are set in the session."""
    if hasattr(spark.conf, "getAll"):
        settings = spark.conf.getAll
    else:  # Spark 3.5
        settings = {row[0]: row[1] for row in spark.sql("SET").collect()}
    return {name: value for name, value in settings.items() if name.startswith("spark.sql.zorder.")}


def initial_settings(spark: SparkSession) -> dict[str, str]:
    """The pyzorder settings that the session was created with. With Spark Connect, the result is
    empty."""
    if bridge.is_connect(spark):
        return {}
    settings = dict(spark.sparkContext.getConf().getAll())
    return {name: value for name, value in settings.items() if name.startswith("spark.sql.zorder.")}
