"""Loads the benchmark loops for the JVM (jvm/src/bench) from a jar in build/bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parent.parent / "jvm"))

import build  # noqa: E402


def load(spark: SparkSession) -> Any:
    """Builds the jar if needed, adds it to a session's JVM, and returns the package `io.pyzorder`
    in that JVM."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.io.File(str(build.bench_jar())).toURI().toURL())
    return jvm.io.pyzorder
