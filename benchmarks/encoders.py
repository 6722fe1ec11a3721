"""Compares each encoder with a naive implementation, in nanoseconds per row.

    python benchmarks/encoders.py [--rows 2000000]

The loops for the JVM are in io.pyzorder.expressions.EncoderBenchmark (jvm/src/bench). Spark is used
only to start the JVM.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import jvm_loops
import numpy as np
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import boundaries, interleave


def nanoseconds(run: Callable[[], object], rows: int) -> float:
    """Returns the nanoseconds per row of the fastest of five runs."""
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - start)
    return best / rows


def line(name: str, ours: float, plain_name: str, plain: float) -> None:
    """Prints one comparison."""
    print(f"{name:<44}{ours:8.1f} ns   {plain_name:<28}{plain:8.1f} ns   x{plain / ours:5.1f}")


def bit_loop(ids: list[np.ndarray], bits: int) -> np.ndarray:
    """Interleaves one bit at a time."""
    z = np.zeros(len(ids[0]), dtype=np.int64)
    for bit in range(bits):
        for c, column in enumerate(ids):
            z |= (column >> bit & 1) << (bit * len(ids) + len(ids) - 1 - c)
    return z


def numpy_side(rows: int) -> None:
    """Measures the NumPy encoders. Interleaving is compared with a loop over bits."""
    random = np.random.default_rng(7)
    for n in (2, 4):
        bits = interleave.bits_per_column(n)
        ids = [random.integers(0, 1 << bits, rows) for _ in range(n)]
        line(
            f"NumPy: long z-value of {n} columns",
            nanoseconds(lambda ids=ids, bits=bits: interleave.interleave_long(ids, bits), rows),
            "bit loop",
            nanoseconds(lambda ids=ids, bits=bits: bit_loop(ids, bits), rows),
        )
    made = boundaries.from_values("bigint", random.integers(0, 1 << 40, 1000))
    values = random.integers(0, 1 << 40, rows)
    print(f"{'NumPy: range id among 1000':<44}"
          f"{nanoseconds(lambda: made.range_ids(values), rows):8.1f} ns")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = pyzorder.configure(builder).getOrCreate()
    loops = jvm_loops.load(spark).expressions.EncoderBenchmark(rows)
    for n in (2, 3, 4, 8):
        line(f"JVM: long z-value of {n} columns", loops.longSpread(n), "bit loop",
             loops.longBitLoop(n))  # fmt: skip
    for n in (2, 4, 16):
        line(f"JVM: 64 bits each of {n} columns, to bytes", loops.bytesSpread(n), "bit loop",
             loops.bytesBitLoop(n))  # fmt: skip
    for size in (100, 1000, 10000):
        line(f"JVM: range id among {size} longs", loops.searchPrimitive(size), "boxed search",
             loops.searchBoxed(size))  # fmt: skip
    line("JVM: range id among 1000 strings", loops.searchStrings(1000), "boxed search",
         loops.searchStringsBoxed(1000))  # fmt: skip
    spark.stop()
    numpy_side(rows)


if __name__ == "__main__":
    main()
