"""The Spark session of tpc.py, which measures the CPU time of queries."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from small_tables import SKIPPING

from pyzorder import demo


class Session:
    """A Spark session that measures the CPU time of its JVM, which also executes the tasks."""

    def __init__(self) -> None:
        # In a server, the code that Spark generates for a query remains compiled between two runs.
        # With the default limits, the many queries of this session displace each other's code.
        self.spark = demo.start_spark(
            memory="8g",
            options={
                "spark.sql.codegen.cache.maxEntries": "2000",
                "spark.driver.extraJavaOptions":
                # a concurrent collector's work would count for whichever run comes next
                "-XX:ReservedCodeCacheSize=512m -XX:+UseParallelGC"
                # the CPU time of a thread that has ended is unknown
                " -XX:-UseDynamicNumberOfCompilerThreads",
            },
        )
        jvm = self.spark._jvm
        self._process = jvm.java.lang.ProcessHandle.current()
        self._collect_garbage = jvm.java.lang.System.gc
        self._compilers = list(compiler_threads(self._process.pid()))

    def run(self, query: str, skips: bool) -> tuple[DataFrame, list[Any], tuple[float, ...]]:
        """Runs a query. Returns its rows, its CPU time without and of the JIT compiler, and its
        elapsed time, in seconds."""
        self.spark.conf.set(SKIPPING, str(skips).lower())
        self._collect_garbage()
        jit, cpu, start = self._jit(), self._cpu(), time.perf_counter()
        df = self.spark.sql(query)
        rows = df.collect()
        seconds, cpu, jit = time.perf_counter() - start, self._cpu() - cpu, self._jit() - jit
        return df, rows, (cpu - jit, jit, seconds)

    def _cpu(self) -> float:
        return float(self._process.info().totalCpuDuration().get().toMillis()) / 1000

    def _jit(self) -> float:
        return sum(map(cpu_of_thread, self._compilers))


def compiler_threads(pid: int) -> Iterator[Path]:
    """Yields the threads of a JVM's JIT compiler. Only Linux lists them."""
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(FileNotFoundError):  # the thread has ended
            if re.match("C[12] Comp", (thread / "comm").read_text()):
                yield thread


def cpu_of_thread(thread: Path) -> float:
    """The CPU time of a thread in seconds."""
    fields = (thread / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
