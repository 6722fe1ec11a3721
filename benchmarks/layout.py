"""Measures what lookups and box queries read in each layout: files, row groups, bytes and rows.

    python benchmarks/layout.py [--only lineitem,uniform_2] [--files 64,100,256,1000] [--resume]

Every table is written in each layout, with about the same number of files. opened.py computes the
share of the files that queries open. These figures are means over columns and values, and do not
vary between runs. The share of rows that box queries read is measured with Spark's reader, which
also skips pages. Layouts of other projects are measured for the real and the difficult tables, but
not for the uniform tables.

Prints a table, and writes each line to benchmarks/results as soon as it is measured. The results
are in layout_uniform.md and layout.md. layout_peers.md compares the number of files opened in the
layouts of other projects with the number opened in pyzorder's layout.
"""

from __future__ import annotations

import argparse
import itertools
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

import deltalake
import numpy as np
import peers
import pyarrow.parquet as pq
import report
from datasets import DATASETS, FOLDER, Dataset, data_files, size_of, uniform
from opened import Queries, best_grid, footers
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder import demo

# ---- layouts: each writes the rows to a folder, in about the given number of Parquet files ----


def _as_it_came(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    per_file = math.ceil(df.count() / files)
    df.coalesce(1).write.option("maxRecordsPerFile", per_file).parquet(str(folder))


def _order_by(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    df.repartitionByRange(files, *columns).sortWithinPartitions(*columns).write.parquet(str(folder))


def _binary_z_value(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    keyed = df.selectExpr("*", f"zorder_value({', '.join(columns)}) AS z")
    laid = keyed.repartitionByRange(files, "z").sortWithinPartitions("z").drop("z")
    laid.write.parquet(str(folder))


def _delta_rs(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
    """Lays out the rows with delta-rs, adjusting the target size until there are about `files`
    files."""
    source = folder.with_name(folder.name + ".source")
    df.coalesce(1).write.mode("overwrite").parquet(str(source))
    target = size_of(source) // files
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        deltalake.write_deltalake(str(folder), pq.read_table(source))
        table = deltalake.DeltaTable(str(folder))
        table.optimize.z_order(list(columns), target_size=target)
        table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
        written = len(data_files(folder))
        if abs(written - files) <= 0.03 * files:
            break
        target = max(1, target * written // files)
    shutil.rmtree(source)


def _pyzorder(curve: str) -> Callable[[DataFrame, Sequence[str], int, Path], None]:
    def lay_out(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
        df.write.parquet(str(folder))
        spark = df.sparkSession
        spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size_of(folder) // files))
        spark.conf.set("spark.sql.zorder.optimize.curve", curve)
        table = pyzorder.ZOrderTable.forPath(spark, str(folder))
        table.optimize().executeZOrderBy(*columns)

    return lay_out


def _peer(name: str) -> Callable[[DataFrame, Sequence[str], int, Path], None]:
    def lay_out(df: DataFrame, columns: Sequence[str], files: int, folder: Path) -> None:
        source = Path(unquote(urlparse(df.inputFiles()[0]).path)).parent
        peers.lay_out(name, source, folder, columns, files)

    return lay_out


Layouts = dict[str, Callable[[DataFrame, Sequence[str], int, Path], None]]

OWN: Layouts = {
    "binary z-value": _binary_z_value,
    "pyzorder": _pyzorder("zorder"),
    "pyzorder, hilbert": _pyzorder("hilbert"),
}

OTHERS: Layouts = {
    f"delta-rs {deltalake.__version__}": _delta_rs,
    **{name: _peer(name) for name in peers.PEERS},
}

ALL: Layouts = {"original order": _as_it_came, "ORDER BY": _order_by, **OWN, **OTHERS}


# ---- the table ----


def measure(
    spark: SparkSession, dataset: Dataset, files: int, layouts: Layouts
) -> Iterator[list[str]]:
    """Yields one line per layout. Raises AssertionError if a layout loses or duplicates a row."""
    if not layouts:
        return
    df = dataset.read(spark)
    queries = Queries(dataset, data_files(FOLDER / f"{dataset.name}.parquet"))
    fingerprint = "count(*), sum(CAST(xxhash64(*) AS DECIMAL(38,0)))"
    expected = df.selectExpr(f"struct({fingerprint})").collect()
    for name, lay_out in layouts.items():
        folder = FOLDER / "laid out"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            lay_out(df, dataset.columns, files, folder)
        except subprocess.CalledProcessError as failure:  # another project's process failed
            print(f"{dataset.name}  {name}  failed: {failure}", flush=True)
            continue
        written = spark.read.schema(df.schema).parquet(*map(str, data_files(folder)))
        assert written.selectExpr(f"struct({fingerprint})").collect() == expected, name
        units, groups = footers(folder, dataset.columns)
        bounds = queries.bounds(units)
        lookups = queries.lookups(bounds)
        (box, box_bytes), (box_groups, _) = (
            queries.boxes(bounds), queries.boxes(queries.bounds(groups)))  # fmt: skip
        yield [
            str(files), dataset.name, name, str(len(units)), f"{np.mean(lookups):.3f}",
            " ".join(f"{share:.3f}" for share in lookups), f"{box:.3f}", f"{box_bytes:.3f}",
            f"{box_groups:.3f}", f"{queries.rows_read(written):.3f}",
            f"{best_grid(len(units), len(dataset.columns)):.3f}",
        ]  # fmt: skip


HEADER = ["requested files", "table", "layout", "files", "lookup", "lookup by column", "box",
          "box, bytes", "box, row groups", "box, rows", "best grid"]  # fmt: skip


def against_pyzorder(lines: Sequence[Sequence[str]]) -> list[list[str]]:
    """For each layout of another project, returns the share of files that queries open, divided by
    the share that they open in pyzorder's layout.

    Each line has three ratios: for lookups, for box queries, and for both together. For the third
    ratio, the shares for lookups on each column and the share for box queries are averaged in each
    layout. The last line for each layout contains the geometric means of its ratios.
    """
    shares = {
        (table, size, layout): (
            float(lookup), float(box), np.mean([float(box), *map(float, by_column.split())]))
        for size, table, layout, _, lookup, by_column, box, *_ in lines
    }  # fmt: skip
    rows = []
    for other in OTHERS:
        ratios = []
        for table, size, layout in shares:
            if layout == other:
                own = shares[table, size, "pyzorder"]
                ratios.append([theirs / ours for theirs, ours in zip(
                    shares[table, size, other], own, strict=True)])  # fmt: skip
                rows.append([other, table, size, *(f"{ratio:.2f}" for ratio in ratios[-1])])
        if ratios:
            means = np.exp(np.mean(np.log(ratios), axis=0))
            rows.append([other, "geometric mean", "", *(f"{mean:.2f}" for mean in means)])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of tables, separated by commas")
    parser.add_argument(
        "--resume", action="store_true", help="keep existing results and add missing ones"
    )
    parser.add_argument(
        "--files",
        default="64,100,256,1000",
        help="numbers of files of the uniform tables, separated by commas",
    )
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.files.split(",")]
    rivals = {"pyzorder": OWN["pyzorder"], **OTHERS}
    parts = {
        "layout": [
            *((dataset, 90, ALL) for dataset in DATASETS),
            *((dataset, 100, rivals) for dataset in DATASETS),
            *((dataset, 256, OWN) for dataset in DATASETS if dataset.name == "mixed"),
        ],
        "layout_uniform": list(
            itertools.product([uniform(columns) for columns in (2, 3, 4)], sizes, [OWN])
        ),
    }
    wanted = arguments.only.split(",") if arguments.only else None
    spark = demo.start_spark()
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    absent = [name for name, peer in peers.PEERS.items() if not peer.is_there]
    if absent:
        print(f"Left out, because `make peers` has not fetched them: {', '.join(absent)}")
    for part, planned in parts.items():
        lines = report.read(part) if arguments.resume else []
        known = {tuple(line[:3]) for line in lines}
        order = [(str(files), one.name, name) for one, files, names in planned for name in names]
        print("  ".join(HEADER), flush=True)
        for dataset, files, layouts in planned:
            if wanted is not None and dataset.name not in wanted:
                continue
            missing = {
                name: way
                for name, way in layouts.items()
                if (str(files), dataset.name, name) not in known and name not in absent
            }
            for line in measure(spark, dataset, files, missing):
                print("  ".join(line), flush=True)
                lines.append(line)
                lines.sort(key=lambda line: order.index(tuple(line[:3])))  # type: ignore[arg-type]
                report.write(
                    part, "Layouts",
                    "The figures show how much of a table queries read: the share of its files, "
                    "unless the heading names bytes, row groups or rows. Measured by "
                    "`make bench-layout`.",
                    [HEADER, *lines])  # fmt: skip
        compared = against_pyzorder(lines)
        for row in compared:
            print("  ".join(row), flush=True)
        if compared:
            report.write(
                "layout_peers", "Files opened, relative to pyzorder",
                "Each figure is the number of files that queries open in another project's "
                "layout, divided by the number that they open in pyzorder's layout. Both layouts "
                "have the same rows and columns, and about the same number of files. For `all`, "
                "the shares for lookups on each column and for boxes are averaged before the "
                "division. Measured by `make bench-layout`.",
                [["layout", "table", "files", "lookup", "box", "all"], *compared])  # fmt: skip
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
