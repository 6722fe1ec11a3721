"""If the driver runs out of memory during OPTIMIZE, each row still exists exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import sessions
from tests.support.tables import aim_at, data_files

MIB = 1 << 20
PIECE = 16 * 1024  # the size of an array in bytes, small enough to fill gaps in the heap
ROWS = 200_000
FILLED = "the heap is full"


def fill_heap(spark: SparkSession, left: int) -> list[object]:
    """Fills the JVM's heap except for `left` bytes. The memory stays in use as long as the result
    is referenced."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    runtime = jvm.java.lang.Runtime.getRuntime()
    kept: list[object] = []
    while True:
        jvm.java.lang.System.gc()
        free = runtime.maxMemory() - runtime.totalMemory() + runtime.freeMemory()
        if free < left:
            return kept
        kept.append(gateway.new_array(jvm.byte, (free - left) // PIECE + 1, PIECE))


def main(table: str, left: str) -> None:
    spark = sessions.session(memory="500m")
    spark.sql(f"OPTIMIZE '{table}' DRY RUN").collect()  # loads classes
    kept = fill_heap(spark, int(left) * MIB)
    print(FILLED, flush=True)
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id, text)").collect()
    assert kept


@pytest.mark.crash
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("left", [10, 20, 40])
def test_out_of_memory(spark: SparkSession, tmp_path: Path, left: int, dies: bool) -> None:
    """Each row exists exactly once even if OPTIMIZE has only `left` MiB of free heap. If `dies` is
    set, the JVM exits on the first OutOfMemoryError. Otherwise, it tries to continue."""
    table = tmp_path / "t"
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", "concat('text-', hash(id)) AS text")
    rows.write.parquet(str(table))
    aim_at(spark, table, 4)
    old = data_files(table)
    options = sessions.SUBMIT_OPTIONS + (" -XX:+ExitOnOutOfMemoryError" if dies else "")
    log = tmp_path / "said"
    with log.open("w") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.test_driver_memory", str(table), str(left)],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "SPARK_SUBMIT_OPTS": options},
        )
        try:
            succeeded = child.wait(timeout=150) == 0
        except subprocess.TimeoutExpired:
            succeeded = False  # the process is stuck in garbage collection
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    said = log.read_text()
    assert FILLED in said, said[-2000:]
    assert not succeeded or data_files(table) != old
    for _ in ("before the next writer", "after it"):
        frame = spark.read.schema("id BIGINT, text STRING").parquet(str(table))
        (seen,) = frame.selectExpr("count(*)", "count(DISTINCT id)", "sum(id)").collect()
        assert tuple(seen) == (ROWS, ROWS, ROWS * (ROWS - 1) // 2), said[-2000:]
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id)").collect()
    assert not list(table.rglob("*.staged"))


if __name__ == "__main__":
    main(*sys.argv[1:])
