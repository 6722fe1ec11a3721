"""If an index is damaged, copied or forged, queries still return the right answers and do not
fail."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import forged_records, indexes, scans
from tests.support.damaged_indexes import (
    DAMAGE,
    PLAIN,
    change,
    edited,
    in_upper_case,
    index_files,
    pointer,
    rewritten,
    snapshot,
)
from tests.support.tables import data_files, target_size

SCHEMA = "id BIGINT, s STRING, x DOUBLE"
LARGE = "spark.sql.zorder.index.driverLimit"

#: What `ask` returns: the ids that filters on `id` and `s` select, and aggregates that can be
#: computed from the index. The table contains the ids 0 to 99, and `s` contains the same ids as
#: text.
ANSWERS = [12, *range(95, 100), (100, 0, 99)]


def ask(spark: SparkSession, table: Path) -> list[object]:
    spark.read.schema(SCHEMA).parquet(str(table)).createOrReplaceTempView("t")
    found = spark.sql("SELECT id FROM t WHERE id = 12 UNION ALL SELECT id FROM t WHERE s >= '95'")
    ends = spark.sql("SELECT count(*), min(id), max(id) FROM t").first()
    return [*sorted(row["id"] for row in found.collect()), tuple(ends or ())]


def skips(spark: SparkSession, table: Path) -> bool:
    """Whether a lookup skips files."""
    frame = spark.read.schema(SCHEMA).parquet(str(table))
    return len(scans.opened(frame.where("id = 12"))) < len(data_files(table))


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a table that OPTIMIZE has clustered."""
    table = Path(tmp_path_factory.mktemp("source")) / "t"
    rows = spark.range(0, 100, 1, 4).selectExpr("id", "string(id) AS s", "id / 7D AS x")
    rows.write.parquet(str(table))
    target_size(spark, 1)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    for old in (table / "_zorder" / "_retired").rglob("*.retired"):
        old.unlink()
    assert ask(spark, table) == ANSWERS and skips(spark, table)
    yield table
    spark.catalog.dropTempView("t")


def copy(source: Path, table: Path) -> Path:
    """Copies the table with hard links, so the copy has the same modification times."""
    shutil.copytree(source, table, copy_function=lambda a, b: os.link(a, b))
    return table


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged(spark: SparkSession, source: Path, tmp_path: Path, what: str) -> None:
    """With a damaged index, queries return the right answers, and REFRESH restores the index."""
    table = copy(source, tmp_path / "t")
    DAMAGE[what](table)
    assert ask(spark, table) == ANSWERS
    if what.startswith(("many", "a long path")):
        assert not skips(spark, table)
    if what == "no pointer":
        return  # a missing index does not count as damaged
    if not what.startswith(("many", "a long")):  # a collect of these could exhaust the memory
        try:
            spark.sql(f"SELECT * FROM skipping_index('{table}')").collect()
            spark.sql(f"DESCRIBE SKIPPING INDEX ON '{table}'").collect()
        except AnalysisException as failure:
            assert "ZORDER_INDEX_NOT_FOUND" in str(failure)
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    assert skips(spark, table)


def test_names_that_differ_in_case(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """`skipping_index` leaves out columns that the session cannot tell apart."""
    table = copy(source, tmp_path / "t")
    in_upper_case(table)
    assert ask(spark, table) == ANSWERS
    for exact, found in (("false", set()), ("true", {"id_exact", "ID_exact"})):
        with scans.settings(spark, spark__sql__caseSensitive=exact):
            rows = spark.sql(f"SELECT * FROM skipping_index('{table}')")
            assert {name for name in rows.columns if name.endswith("_exact")} == found
            assert len(rows.collect()) == len(data_files(table))
            spark.sql(f"DESCRIBE SKIPPING INDEX ON '{table}'").collect()


@pytest.mark.parametrize("codec", ["snappy", "none", "zstd", "gzip", "brotli", "lz4"])
@pytest.mark.parametrize("large", [False, True])
def test_codecs(spark: SparkSession, source: Path, tmp_path: Path, codec: str, large: bool) -> None:
    """A snapshot is used only if it is compressed with a codec that pyzorder uses."""
    table = copy(source, tmp_path / "t")
    rewritten(lambda rows: rows, compression=codec)(table)
    ours = codec in ("snappy", "none")
    with scans.settings(spark, spark__sql__zorder__index__driverLimit="1" if large else "512m"):
        assert ask(spark, table) == ANSWERS
        assert skips(spark, table) == ours
    if ours:
        assert len(indexes.table(spark, table)) == len(data_files(table))
    else:
        with pytest.raises(AnalysisException, match="ZORDER_INDEX_NOT_FOUND"):
            spark.sql(f"SELECT * FROM skipping_index('{table}')")


def test_pointers_are_read_once(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """A pointer is read again only if its size or modification time changes. This check is
    sufficient, because pyzorder never changes an existing pointer."""
    table = copy(source, tmp_path / "t")
    change(pointer(table), pointer(table).read_bytes())
    size = pointer(table).stat().st_size
    os.utime(pointer(table), (1_700_000_000, 1_700_000_000))
    assert skips(spark, table)
    pointer(table).write_bytes(b" " * size)
    os.utime(pointer(table), (1_700_000_000, 1_700_000_000))
    assert skips(spark, table)
    os.utime(pointer(table), (1_700_000_001, 1_700_000_001))
    assert ask(spark, table) == ANSWERS and not skips(spark, table)


#: The number of bits to flip in each file, one at a time.
FLIPS = 3


def flipped(file: Path, part: float) -> bytes:
    content = bytearray(file.read_bytes())
    bit = int(part * (len(content) * 8 - 1))
    content[bit // 8] ^= 1 << (bit % 8)
    return bytes(content)


@pytest.mark.parametrize("large", [False, True])
def test_flipped_bits(spark: SparkSession, source: Path, tmp_path: Path, large: bool) -> None:
    """Queries return the right answers even if a bit is flipped in a pointer, a snapshot, a record
    or the incarnation. If `large` is set, Spark reads the index, and bits are flipped only in the
    snapshot."""
    wrong = []
    names = [snapshot(source)] if large else index_files(source)
    with scans.settings(spark, spark__sql__zorder__index__driverLimit="1" if large else "512m"):
        for name in (path.relative_to(source) for path in names):
            for i in range(FLIPS * (2 if large else 1)):
                table = copy(source, tmp_path / f"{name.name} {i}")
                part = ((i + 1) * 0.618034) % 1  # the golden ratio spreads the positions evenly
                change(table / name, flipped(table / name, part))
                if ask(spark, table) != ANSWERS:
                    wrong.append(f"{name}, bit at {part}")
    assert not wrong


def forge(table: Path, rows: Callable[[dict[str, list[object]]], object]) -> None:
    """Changes the rows of the index table, and updates the snapshot's checksum and length in the
    pointer."""
    content = pq.read_table(pa.BufferReader(snapshot(table).read_bytes()))
    columns = content.to_pydict()
    rows(columns)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns, schema=content.schema), sink)
    data = sink.getvalue().to_pybytes()
    change(snapshot(table), data)
    edited(length=len(data), crc32=zlib.crc32(data), numFiles=len(columns["path"]))(table)


def test_a_decimal_of_megabytes(spark: SparkSession, tmp_path: Path) -> None:
    """A query is not slow even if a bound is a 32 MiB decimal. Counting the digits of this decimal
    would take minutes."""
    table = tmp_path / "t"
    spark.range(0, 20, 1, 2).selectExpr("cast(id AS decimal(38, 0)) d").write.parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")

    def lengthen(rows: pa.Table) -> pa.Table:
        bounds = pa.array([b"\x7f" + b"\xff" * (32 << 20), b"\x01"], pa.binary())
        for name in ("d_minValue", "d_maxValue"):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, pa.field(name, pa.binary()), bounds)
        return rows

    rewritten(lengthen, **PLAIN)(table)
    frame = spark.read.parquet(str(table)).where("d < 5")
    assert frame.count() == 5 and len(scans.opened(frame)) == 2


def test_more_entries_than_memory(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """Queries return the right answers and skip files even if a forged index has 1.6 million
    additional entries."""
    table = copy(source, tmp_path / "t")

    def add(columns: dict[str, list[object]]) -> None:
        more = 1_600_000
        for name, values in columns.items():
            values.extend([values[0]] * more if name != "path" else map(str, range(more)))

    forge(table, add)
    # Resetting the cache size at the end of the block also clears the cache.
    with scans.settings(spark, spark__sql__zorder__index__cacheSize="512m"):
        assert ask(spark, table) == ANSWERS and skips(spark, table)
        spark.range(100, 101).selectExpr("id", "string(id) AS s", "id / 7D AS x").write.mode(
            "append"
        ).parquet(str(table))
        assert spark.read.parquet(str(table)).where("id >= 98").count() == 3
        with scans.settings(spark, spark__sql__zorder__index__maxStaleness="1h"):
            assert spark.read.parquet(str(table)).where("id >= 98").count() == 3


#: Paths that lead outside the table's folder. They point to the only file of another table.
OUTSIDE = [
    "../other/{}",
    "x/../../other/{}",
    "./../other/{}",
    "{other}/{}",
    "//other/{}",
    "a//../other/{}",
    "",
]


@pytest.mark.parametrize("large", [False, True])
def test_entries_that_leave_the_folder(
    spark: SparkSession, source: Path, tmp_path: Path, large: bool
) -> None:
    """Entries whose paths lead outside the folder are ignored, and REFRESH removes them. The other
    entries are still used."""
    table, other = copy(source, tmp_path / "t"), tmp_path / "other"
    spark.range(100, 101, 1, 1).selectExpr("id", "'x' AS s", "0D AS x").write.parquet(str(other))
    (file,) = data_files(other)
    status = file.stat()

    def add(columns: dict[str, list[object]]) -> None:
        for name in OUTSIDE:
            for values in columns.values():
                values.append(values[0])
            columns["path"][-1] = name.format(file.name, other=other)
            columns["size"][-1] = status.st_size
            columns["modification_time"][-1] = status.st_mtime_ns // 1_000_000

    forge(table, add)
    assert len(indexes.table(spark, table)) == len(data_files(table)) + len(OUTSIDE)
    with scans.settings(spark, spark__sql__zorder__index__driverLimit="1" if large else "512m"):
        assert ask(spark, table) == ANSWERS
        assert skips(spark, table)
        assert spark.read.parquet(str(other)).where("id = 100").count() == 1
        both = spark.read.parquet(str(table), str(other))
        assert both.where("id = 100").count() == 1
    assert len(indexes.loaded(spark, table)) == len(data_files(table))
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    assert len(indexes.table(spark, table)) == len(data_files(table))


@pytest.mark.parametrize("name", [".h/x.parquet", "_zorder/_index/x", "p=1/_h/x.parquet", "_x"])
def test_entries_of_hidden_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """A query that is planned without a listing ignores the entries of files that a listing would
    hide."""
    table = tmp_path / "t"
    rows = spark.range(0, 20, 1, 1).selectExpr("id", "id % 2 p")
    rows.write.partitionBy("p").parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")

    def add(columns: dict[str, list[object]]) -> None:
        for values in columns.values():
            values.append(values[0])
        columns["path"][-1] = name
        columns["num_records"][-1] = 0

    forge(table, add)
    with scans.settings(spark, spark__sql__zorder__index__maxStaleness="1h"):
        frame = spark.read.parquet(str(table))
        assert frame.where("id >= 18").count() == 2
        assert frame.groupBy("p").count().orderBy("p").collect() == [(0, 10), (1, 10)]
        assert frame.count() == 20


def test_a_journal_that_leaves_the_folder(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    """Forged records of a run cannot make readers read another table's file, and cannot make a
    writer delete that file."""
    table, other = copy(source, tmp_path / "t"), tmp_path / "other"
    spark.range(100, 101, 1, 1).selectExpr("id", "'x' AS s", "0D AS x").write.parquet(str(other))
    (file,) = data_files(other)
    stolen = {
        "path": f"../other/{file.name}",
        "size": file.stat().st_size,
        "modificationTime": file.stat().st_mtime_ns // 1_000_000,
    }
    journal = table / "_zorder" / "_journal"
    life = (table / "_zorder" / "_incarnation").read_text()
    for outcome in ("ABORT", "COMMIT"):
        for retired, added in (([stolen], []), ([], [stolen])):
            records: dict[str, dict[str, object]] = {
                "prepare": {"operation": "OPTIMIZE", "owner": "x", "host": "elsewhere", "pid": 1,
                            "started": 1, "began": 1, "lease": 1},
                "retire": {"retire": retired, "add": added, "folders": ["../other"]},
                "outcome": {"outcome": outcome, "by": "x"},
            }  # fmt: skip
            for kind, fields in records.items():
                record = {"formatVersion": 1, "record": kind, "incarnation": life, **fields}
                (journal / f"_2.{kind}").write_text(json.dumps(record))
            assert ask(spark, table) == ANSWERS
            with scans.settings(spark, spark__sql__zorder__journal__takeOver="2"):
                spark.sql(f"VACUUM '{table}'")  # the next writer recovers
            assert file.exists() and ask(spark, table) == ANSWERS
            for path in journal.glob("_[23].*"):
                path.unlink()


def test_an_index_of_another_table(spark: SparkSession, tmp_path: Path) -> None:
    """An index that was copied from another table is ignored, even if the names, sizes and
    modification times in its entries match this table's files. The two tables differ only in their
    incarnations."""
    folders = []
    for start in (0, 50):
        table = tmp_path / str(start)
        table.mkdir()
        for half in (0, 1):
            ids = list(range(start + 25 * half, start + 25 * half + 25))
            content = pa.table({"id": ids, "s": [str(i).zfill(2) for i in ids]})
            pq.write_table(content, table / f"part-{half}.parquet", compression="none")
            os.utime(table / f"part-{half}.parquet", (1_700_000_000, 1_700_000_000))
        spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
        folders.append(table)
    first, second = folders
    sizes = [[file.stat().st_size for file in data_files(table)] for table in folders]
    assert sizes[0] == sizes[1]
    shutil.rmtree(second / "_zorder" / "_index")
    shutil.copytree(first / "_zorder" / "_index", second / "_zorder" / "_index")
    assert spark.read.parquet(str(second)).where("id >= 50").count() == 50
    assert spark.read.parquet(str(second)).selectExpr("max(id)").first() == (99,)
    spark.sql(f"REFRESH SKIPPING INDEX ON '{second}'")
    frame = spark.read.parquet(str(second))
    assert len(scans.opened(frame.where("id = 99"))) == 1 == frame.where("id = 99").count()


@contextmanager
def times(table: Path, seconds: float) -> Iterator[None]:
    """Sets the modification time of all files in the table's folder, including pyzorder's files."""
    for path in [*data_files(table), *index_files(table)]:
        os.utime(path, (seconds, seconds))
    yield


@pytest.mark.parametrize("seconds", [4_102_444_800, -86_400])
def test_clock_skew(spark: SparkSession, source: Path, tmp_path: Path, seconds: float) -> None:
    """Queries and statements work even if the store's clock is off by decades. Modification times
    are then far in the future or before 1970."""
    table = tmp_path / "t"
    shutil.copytree(source, table)
    with times(table, seconds):
        assert ask(spark, table) == ANSWERS  # no file matches its entry
        spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
        assert ask(spark, table) == ANSWERS and skips(spark, table)
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (x)")
    with times(table, seconds):
        assert ask(spark, table) == ANSWERS
        spark.sql(f"VACUUM '{table}' RETAIN 1 HOURS")
        assert ask(spark, table) == ANSWERS


def test_a_lease_from_the_future(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    """A writer whose lease has a modification time in the future is considered alive until a user
    declares the writer dead. Readers are not affected."""
    table = copy(source, tmp_path / "t")
    forged_records.lock(table)
    assert ask(spark, table) == ANSWERS
    with pytest.raises(AnalysisException, match="ZORDER_CONCURRENT_OPTIMIZE.*takeOver=2"):
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (x)")
    with scans.settings(spark, spark__sql__zorder__journal__takeOver="2"):
        spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (x)")
    assert ask(spark, table) == ANSWERS
