"""Statements report two kinds of files in a table's folder: data files whose column types conflict
with those of other files, and files that are not data files."""

from __future__ import annotations

import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import scans
from tests.support.sampled import long
from tests.support.tables import data_files, metrics, rows_of

BY_TABLE = ["OPTIMIZE {}", "OPTIMIZE {} ZORDER BY (id)"]
BY_PATH = [
    *BY_TABLE,
    "OPTIMIZE {} ZORDER BY (id) DRY RUN",
    "CREATE SKIPPING INDEX ON {}",
    "VACUUM {}",
]

#: (the values of `a` in two files, the declared type of `a`, the types that the error names)
CONFLICTS = {
    "text": ([1, 2], ["x", "y"], "INT", ("INT", "STRING")),
    "number for text": (["x", "y"], [1.5, 2.5], "STRING", ("STRING", "DOUBLE")),
    "wider": ([1, 2], pa.array([7, 2**40]), "INT", ("INT", "BIGINT")),
    "field": ([{"x": 1}], [{"x": "y"}], "STRUCT<x: INT>", ("INT", "STRING")),
    "struct": ([1, 2], [{"x": 3}], "INT", ("INT", "STRUCT")),
    "elements": ([[1], [2]], [["x"], []], "ARRAY<INT>", ("INT", "STRING")),
}


def write(folder: Path, provider: str, *columns: object) -> None:
    """Writes one file for each of the given columns."""
    folder.mkdir()
    for n, column in enumerate(columns):
        a = column if isinstance(column, pa.Array) else pa.array(column)
        if isinstance(column, list):
            a = narrowed(a)
        rows = pa.table({"id": pa.array(range(len(a)), pa.int32()), "a": a})
        path = str(folder / f"part-{n}.{provider}")
        (pq.write_table if provider == "parquet" else po.write_table)(rows, path)


def narrowed(array: pa.Array) -> pa.Array:
    """Casts integers to 32 bits, because PyArrow stores Python integers with 64 bits."""
    narrow = {
        pa.int64(): pa.int32(),
        pa.list_(pa.int64()): pa.list_(pa.int32()),
        pa.struct({"x": pa.int64()}): pa.struct({"x": pa.int32()}),
    }
    return array.cast(narrow.get(array.type, array.type))


@pytest.mark.parametrize("provider", long(["parquet", "orc"], "parquet"))
@pytest.mark.parametrize("case", CONFLICTS)
def test_incompatible_types(
    spark: SparkSession, database: str, tmp_path: Path, case: str, provider: str
) -> None:
    one, other, declared, types = CONFLICTS[case]
    folder = tmp_path / "t"
    write(folder, provider, one, other)
    spark.sql(f"CREATE TABLE t (id INT, a {declared}) USING {provider} LOCATION '{folder}'")
    before = {path: path.read_bytes() for path in data_files(folder)}
    by_table = BY_TABLE if (case, provider) != ("number for text", "orc") else []
    targets = [(s, "t") for s in by_table] + [(s, f"{provider}.`{folder}`") for s in BY_PATH]
    for statement, target in targets:
        with pytest.raises(AnalysisException) as raised:
            spark.sql(statement.format(target)).collect()
        sentence = str(raised.value)
        assert "[ZORDER_INCOMPATIBLE_TYPES]" in sentence, (statement, target, sentence)
        named = dict(re.findall(r"(\w+) in \S*/(part-\d)", sentence))
        assert named == {types[0]: "part-0", types[1]: "part-1"}, (statement, target, sentence)
        assert {path: path.read_bytes() for path in data_files(folder)} == before
    spark.sql("CREATE SKIPPING INDEX ON t")  # ignores files that cannot be read


@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_no_file_is_of_the_declared_type(
    spark: SparkSession, database: str, tmp_path: Path, provider: str
) -> None:
    write(tmp_path / "t", provider, ["x"], ["y"])
    spark.sql(f"CREATE TABLE t (id INT, a INT) USING {provider} LOCATION '{tmp_path / 't'}'")
    with pytest.raises(AnalysisException, match="INT in table .*`t` but STRING in .*part-"):
        spark.sql("OPTIMIZE t ZORDER BY (id)").collect()


@pytest.mark.parametrize(
    ("one", "other", "declared"),
    [
        (pa.array([1, 2], pa.int32()), pa.array([7, 2**40]), "BIGINT"),
        (pa.array([1, 2], pa.int16()), pa.array([7, 8], pa.int32()), "INT"),
        (pa.array([1.5], pa.float32()), pa.array([2.5]), "DOUBLE"),
        (pa.array([1, 2], pa.int32()), pa.array([3, 4]), "DECIMAL(20, 0)"),
    ],
)
@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_types_that_fit(
    spark: SparkSession,
    database: str,
    tmp_path: Path,
    one: pa.Array,
    other: pa.Array,
    declared: str,
    provider: str,
) -> None:
    """If a column has been widened, OPTIMIZE rewrites the files that still have the old type."""
    if provider == "parquet" and declared != "INT" and spark.version < "4":
        pytest.skip("Spark 3.5 cannot read Parquet files as these types")
    write(tmp_path / "t", provider, one, other)
    spark.sql(f"CREATE TABLE t (id INT, a {declared}) USING {provider} LOCATION '{tmp_path / 't'}'")
    before = rows_of(spark.table("t"))
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (id)"))
    assert done.numFilesRemoved == 2 and rows_of(spark.table("t")) == before


#: Files other than data files that users leave in a table's folder.
STRAYS = {
    "README.txt": "This table is made by the nightly job.\n" * 9,
    "notes": "x",
    "a.csv": "1,2\n" * 99,
}


@pytest.mark.parametrize("provider", ["parquet", "orc"])
@pytest.mark.parametrize("name", STRAYS)
def test_no_data_file(
    spark: SparkSession, database: str, tmp_path: Path, name: str, provider: str
) -> None:
    folder = tmp_path / "db" / "t"
    spark.range(0, 60, 1, 3).write.format(provider).saveAsTable("t")
    (folder / name).write_text(STRAYS[name])
    for target in ("t", f"'{folder}'", f"{provider}.`{folder}`"):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(f"OPTIMIZE {target} ZORDER BY (id)").collect()
        sentence = str(raised.value)
        assert "[ZORDER_UNREADABLE_FILE]" in sentence and f"/{name}" in sentence, sentence
        assert "move it, or give it a name that starts with _ or ." in sentence, sentence
    (folder / name).rename(folder / f"_{name}")
    with scans.settings(spark, spark__sql__zorder__optimize__targetFileSize="600"):
        assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)")).numFilesRemoved == 3
    assert (folder / f"_{name}").exists()


#: Unusual but valid names of data files.
NAMES = ["attempt_1.parquet", "task_0.parquet", "part-0", "a=b.parquet", "a=b", "x y.parquet", "%20%2F.parquet",
         "x.parquet.retired", "x.staged", "zorder_.7.parquet", "é.parquet", "#1.parquet"]  # fmt: skip


def test_odd_names_of_data_files(spark: SparkSession, database: str, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    for n, name in enumerate(NAMES):
        pq.write_table(pa.table({"id": pa.array([n, n + 100], pa.int32())}), folder / name)
    spark.sql(f"CREATE TABLE t (id INT) USING parquet LOCATION '{folder}'")
    before = rows_of(spark.table("t"))
    assert sum(before.values()) == 2 * len(NAMES)
    spark.sql("CREATE SKIPPING INDEX ON t")
    assert {row["path"] for row in spark.sql("SELECT path FROM skipping_index('t')").collect()} == {
        *NAMES
    }
    for n, name in enumerate(NAMES):
        opened = scans.opened(spark.sql(f"SELECT * FROM t WHERE id = {n}"))
        assert len(opened) <= n + 1 and name in {unquote(path) for path in opened} | opened
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (id)"))
    assert done.numFilesRemoved == len(NAMES) and rows_of(spark.table("t")) == before
    spark.sql("RESTORE t TO BEFORE OPTIMIZE")
    assert {path.name for path in data_files(folder)} == {*NAMES}
    assert rows_of(spark.table("t")) == before
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        spark.sql("VACUUM t RETAIN 0 HOURS")
    assert {path.name for path in data_files(folder)} == {*NAMES}


@pytest.mark.parametrize(
    ("provider", "name"),
    [("parquet", "p.parquet"), ("parquet", "_metadata"), ("parquet", "_common_metadata"),
     ("orc", "p.orc")],
)  # fmt: skip
@pytest.mark.parametrize("statement", [*BY_PATH, "RESTORE {} TO BEFORE OPTIMIZE"])
def test_a_pipe(
    spark: SparkSession, tmp_path: Path, provider: str, name: str, statement: str
) -> None:
    """No statement on a path waits for a pipe among the data files."""
    folder = tmp_path / "t"
    write(folder, provider, [1, 2], [3, 4])
    pipe = folder / name
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lambda: spark.sql(statement.format(f"'{folder}'")).collect())
        try:
            running.result(timeout=60)
        except TimeoutError:
            while not running.done():
                with contextlib.suppress(OSError):  # no reader is waiting
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            pytest.fail(f"{statement} hangs")
        except AnalysisException as refused:
            assert "ZORDER_" in str(refused)
