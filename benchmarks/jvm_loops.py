"""The loops that benchmarks run in the JVM: jvm/src/bench, in a jar under build/bench."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.append(str(Path(__file__).resolve().parent.parent / "jvm"))

import build  # noqa: E402


def load(spark: SparkSession) -> Any:
    """Compiles the jar if need be, adds it to a session's JVM, and returns `io.pyzorder` there."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    loader.addURL(jvm.java.io.File(str(build.bench_jar())).toURI().toURL())
    return jvm.io.pyzorder
