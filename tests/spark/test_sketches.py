"""With sketches, a lookup by a column that is not a clustering column opens hardly any files except
those that contain the value. Damaged, missing or forged sketches do not change any answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import pyzorder
from pyzorder.index import LocalStore, TableFolder, snapshot_writer
from pyzorder.index.entries import ColumnStatistics, FileEntry
from pyzorder.index.pointers import IndexedColumn
from tests.support import indexes, scans, sketches
from tests.support.lookups import holding, opened, view
from tests.support.tables import data_files

FILES, ROWS = 16, 300


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """A table whose files all span the same range of `key`, `name` and `price`. Its index has
    sketches of these columns."""
    spark.conf.set(sketches.BUDGET, "1")
    folder = tmp_path / "t"
    rows(spark).write.parquet(str(folder))
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}' (key, name, price, id)")
    yield folder
    spark.catalog.dropTempView("t")


def rows(spark: SparkSession, start: int = 0, files: int = FILES) -> DataFrame:
    """Rows for `files` files with `ROWS` rows each. In each file, the values of all columns except
    `id` and `common` are spread over the whole range."""
    return spark.range(start, start + files * ROWS, 1, files).selectExpr(
        "id",
        "xxhash64(id) AS key",
        "sha2(string(id), 256) AS name",
        "CAST(pmod(xxhash64(id), 1000000) / 100 AS DECIMAL(9,2)) AS price",
        "id % 10 AS common",
    )


CONDITIONS = [
    "key = xxhash64(77L)", "xxhash64(77L) = key", "key <=> xxhash64(77L)",
    "key IN (xxhash64(77L), xxhash64(78L), xxhash64(1599L), 5)", "name = sha2('77', 256)",
    "name LIKE '{name}'", "price = {price}", "price = {price}000", "price IN ({price}, 1.234)",
    "key = xxhash64(77L) OR name = sha2('1500', 256)",
    "key IN (xxhash64(77L), xxhash64(1500L)) AND name = sha2('1500', 256)",
    "NOT (key != xxhash64(77L))", "coalesce(key = xxhash64(77L), false)",
    "CASE WHEN key = xxhash64(77L) THEN true ELSE name = sha2('1500', 256) END",
    "key = 5", "name = 'none'", "name = ''", "price = 1.234", "key IN (5, 6, 7)",
]  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_lookups_open_the_files_with_the_value(
    spark: SparkSession, table: Path, condition: str
) -> None:
    view(spark, table)
    row = spark.sql("SELECT name, price FROM t WHERE id = 77").first()
    assert row is not None
    condition = condition.format(name=row["name"], price=row["price"])
    assert opened(spark, table, condition) <= holding(spark, table, condition) + 1


@pytest.mark.parametrize(
    ("condition", "by_sketches"),
    [("key = xxhash64(77L)", True), ("id = 77", False), ("id = 77 AND key = xxhash64(77L)", False),
     ("id < 400 AND key = xxhash64(77L)", True), ("key != xxhash64(77L)", False)],
)  # fmt: skip
def test_explanations_count_the_files_that_only_sketches_skip(
    spark: SparkSession, table: Path, condition: str, by_sketches: bool
) -> None:
    view(spark, table)
    frame = spark.sql(f"SELECT id FROM t WHERE {condition}")
    (scan,) = pyzorder.explain(frame)
    without = opened(spark, table, condition.replace("key = xxhash64(77L)", "key IS NOT NULL"))
    assert scan.skipped_by_sketches == (without - scan.opened if by_sketches else 0)
    text = f"{scan.skipped_by_sketches} skipped by sketches"
    assert (text in str(scan)) == (text in frame._jdf.queryExecution().toString()) == by_sketches


@pytest.mark.parametrize("condition", ["key != xxhash64(77L)", "NOT (key IN (xxhash64(77L)))",
                                       "name >= '0'", "key > 0", "key IS NOT NULL"])  # fmt: skip
def test_other_conditions_open_all_files(spark: SparkSession, table: Path, condition: str) -> None:
    assert opened(spark, table, condition) == FILES


def test_counts_use_sketches(spark: SparkSession, table: Path) -> None:
    """A query that counts the rows with `key != value` opens only the files that may contain the
    value. In all other files, every row matches."""
    view(spark, table)
    query = "SELECT count(*) FROM t WHERE key != xxhash64(77L)"
    assert spark.sql(query).first() == (FILES * ROWS - 1,)
    assert len(scans.opened(spark.sql(query))) <= 2


def test_join_keys(spark: SparkSession, table: Path) -> None:
    view(spark, table)
    spark.range(0, 1600, 400).selectExpr("xxhash64(id) AS k").createOrReplaceTempView("keys")
    query = "SELECT /*+ BROADCAST(keys) */ id FROM t JOIN keys ON key = k"
    frame = spark.sql(query)
    assert sorted(row["id"] for row in frame.collect()) == [0, 400, 800, 1200]
    (scan,) = [s for s in scans.explain(frame) if s["table"] == "t"]
    assert len(scan["opened"]) <= 5
    spark.catalog.dropTempView("keys")


def test_thousands_of_values(spark: SparkSession, table: Path) -> None:
    absent = ", ".join(str(random.Random(1).randrange(2**62)) for _ in range(3000))
    assert opened(spark, table, f"key IN ({absent}, xxhash64(1L))") <= FILES // 2


def test_a_common_column_has_no_sketches(spark: SparkSession, tmp_path: Path) -> None:
    """A column has no sketches if each of its values occurs in all files, or if its bounds already
    skip the same files."""
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).write.parquet(str(tmp_path / "t"))
    spark.sql(f"CREATE SKIPPING INDEX ON '{tmp_path / 't'}' (id, common, key)")
    (segment,) = sketches.pointer(tmp_path / "t")["sketches"]
    assert list(sketches.read(tmp_path / "t", segment)) == ["key"]


@pytest.mark.parametrize("budget", ["0", "0.001"])
def test_the_budget(spark: SparkSession, tmp_path: Path, budget: str) -> None:
    rows(spark).write.parquet(str(tmp_path / "t"))
    spark.conf.set(sketches.BUDGET, budget)
    spark.sql(f"CREATE SKIPPING INDEX ON '{tmp_path / 't'}' (key)")
    assert sketches.stored(tmp_path / "t") == []
    assert opened(spark, tmp_path / "t", "key = xxhash64(77L)") == FILES


def test_columns_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    """If no columns are listed, a sample determines for which columns sketches would skip files.
    These columns get sketches."""
    table = tmp_path / "t"
    rows(spark, 0, 40).write.parquet(str(table))
    spark.conf.set(sketches.BUDGET, "1")
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    assert sketches.pointer(table)["sketched"] == ["key", "name", "price"]
    for condition in CONDITIONS[:5]:
        assert opened(spark, table, condition) <= holding(spark, table, condition) + 1
    rows(spark, 40 * ROWS, 1).write.mode("append").parquet(str(table))
    assert opened(spark, table, f"key = xxhash64({40 * ROWS + 5}L)") <= 2


def test_optimize_chooses_columns(spark: SparkSession, tmp_path: Path) -> None:
    """An OPTIMIZE that creates the index chooses the columns to sketch, and the next OPTIMIZE keeps
    them."""
    table = tmp_path / "t"
    rows(spark, 0, 80).write.parquet(str(table))
    spark.conf.set(sketches.BUDGET, "1")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "15k")
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    assert len(data_files(table)) >= 32
    assert sketches.pointer(table)["sketched"] == ["key", "name", "price"]
    assert opened(spark, table, "key = xxhash64(77L)") <= 2
    spark.sql(f"OPTIMIZE '{table}' FULL ZORDER BY (id, key)")
    assert sketches.pointer(table)["sketched"] == ["key", "name", "price"]
    assert opened(spark, table, "name = sha2('77', 256)") <= 2


@pytest.mark.parametrize(("files", "budget"), [(20, "1"), (40, "0"), (40, "0.001")])
def test_no_columns_are_chosen(
    spark: SparkSession, tmp_path: Path, files: int, budget: str
) -> None:
    """No columns are chosen if there are few files, if sketches are turned off, or if the files are
    too small for the budget."""
    table = tmp_path / "t"
    rows(spark, 0, files).write.parquet(str(table))
    spark.conf.set(sketches.BUDGET, budget)
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}'")
    assert not sketches.pointer(table).get("sketched") and sketches.stored(table) == []


def test_describe(spark: SparkSession, table: Path) -> None:
    described = {
        row["column"]: row for row in spark.sql(f"DESCRIBE SKIPPING INDEX ON '{table}'").collect()
    }
    found = {name: row["sketches"] for name, row in described.items()}
    assert found == {"key": FILES, "name": FILES, "price": FILES, "id": 0}
    assert all((row["sketch_bytes"] > 0) == (row["sketches"] > 0) for row in described.values())


def test_segments_follow_the_format(spark: SparkSession, table: Path) -> None:
    """An independent reader of the format finds every value of every file in the sketches."""
    (segment,) = sketches.pointer(table)["sketches"]
    known = sketches.read(table, segment)
    assert set(known) == {"key", "name", "price"}
    entries = {
        row["path"]: row["sketch_number"]
        for row in spark.sql(f"SELECT * FROM skipping_index('{table}')").collect()
    }
    for file in data_files(table):
        number = entries[file.name]
        found = spark.read.parquet(str(file)).collect()
        for column, write in {
            "key": lambda v: v.to_bytes(8, "little", signed=True),
            "name": str.encode,
            "price": lambda v: int(v * 100).to_bytes(8, "little", signed=True),
        }.items():
            sketch = known[column][number]
            assert sketch is not None
            assert all(sketch.may_contain(write(row[column])) for row in found)
            assert len(sketch.hashes) == len({row[column] for row in found})
            false = sum(sketch.may_contain(f"{i} is absent".encode()) for i in range(1000))
            assert false < 5


def test_insert_adds_a_segment(spark: SparkSession, table: Path) -> None:
    before = sketches.segments(table)
    rows(spark, FILES * ROWS, 2).write.mode("append").parquet(str(table))
    assert len(sketches.segments(table)) == 2 and set(before) < set(sketches.segments(table))
    assert opened(spark, table, f"key = xxhash64({FILES * ROWS + 5}L)") <= 2
    assert opened(spark, table, "key = xxhash64(77L)") <= 2


def test_many_segments_are_merged(spark: SparkSession, table: Path) -> None:
    for i in range(20):
        rows(spark, FILES * ROWS + i * ROWS, 1).write.mode("append").parquet(str(table))
        assert len(sketches.segments(table)) <= 16
    for i in range(20):
        assert opened(spark, table, f"key = xxhash64({FILES * ROWS + i * ROWS + 3}L)") <= 2
    assert opened(spark, table, "name = sha2('77', 256)") <= 2
    assert len(sketches.stored(table)) <= 30  # the segments of the ten newest snapshots


def test_optimize_and_vacuum(spark: SparkSession, table: Path) -> None:
    """OPTIMIZE adds sketches for new files. After VACUUM, no sketches of the replaced files
    remain."""
    before = sketches.segments(table)
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "60k")
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    files = len(data_files(table))
    assert 4 < files < FILES and not set(before) & set(sketches.segments(table))
    for condition in CONDITIONS[:5]:
        assert opened(spark, table, condition) <= holding(spark, table, condition) + 1
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    spark.sql(f"VACUUM '{table}' RETAIN 0 HOURS")
    assert sketches.stored(table) == sorted(sketches.segments(table))


def test_a_table_that_moves_to_a_new_folder(spark: SparkSession, tmp_path: Path) -> None:
    """If OPTIMIZE switches a table to a new folder, the index in this folder has sketches, and
    later writes add to them."""
    spark.conf.set(sketches.BUDGET, "1")
    rows(spark).write.parquet(str(tmp_path / "t"))
    spark.sql(
        "CREATE TABLE moved (id BIGINT, key BIGINT, name STRING, price DECIMAL(9,2), common BIGINT)"
        f" USING parquet LOCATION '{tmp_path / 't'}'"
        " TBLPROPERTIES ('zorder.publish.method' = 'location')"
    )
    try:
        spark.sql("CREATE SKIPPING INDEX ON moved (key)")
        spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "20k")
        spark.sql("OPTIMIZE moved ZORDER BY (id)")
        rows(spark, FILES * ROWS, 1).write.mode("append").insertInto("moved")
        for i in (77, FILES * ROWS + 7):
            lookup = spark.sql(f"SELECT * FROM moved WHERE key = xxhash64({i}L)")
            assert lookup.count() == 1 and len(scans.opened(lookup)) <= 2
    finally:
        spark.sql("DROP TABLE moved")


def test_overwriting_part_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    """If files are deleted, their sketches are removed from the index. The other sketches in their
    segment are written to a new segment."""
    spark.conf.set(sketches.BUDGET, "1")
    table = tmp_path / "t"
    parted = rows(spark).selectExpr("*", "id DIV 800 AS half").repartition(8, "half", "common")
    parted.write.partitionBy("half").parquet(str(table))
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}' (key)")
    before = sketches.segments(table)
    with scans.settings(spark, spark__sql__sources__partitionOverwriteMode="dynamic"):
        rows(spark, 0, 4).selectExpr("*", "0 AS half").write.partitionBy("half") \
            .mode("overwrite").parquet(str(table))  # fmt: skip
    assert len(before) == 1 and not set(before) & set(sketches.segments(table))
    known = [sketches.read(table, s)["key"] for s in sketches.pointer(table)["sketches"]]
    assert sum(len(found) for found in known) == len(data_files(table))
    assert opened(spark, table, "key = xxhash64(1100L)") <= 2
    assert opened(spark, table, "key = xxhash64(7L)") <= 2
    assert opened(spark, table, "key = xxhash64(777L)") <= 1


def test_refresh(spark: SparkSession, table: Path) -> None:
    """REFRESH adds sketches for files from other writers, and removes the sketches of deleted
    files."""
    first, second, *_ = data_files(table)
    first.unlink()
    second.rename(second.with_name("renamed.parquet"))
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    known = [sketches.read(table, s) for s in sketches.pointer(table)["sketches"]]
    assert sum(len(found["key"]) for found in known) == FILES - 1
    for i in (77, 150, 1599):
        assert opened(spark, table, f"key = xxhash64({i}L)") <= 2


def test_excluded_columns_lose_their_sketches(spark: SparkSession, table: Path) -> None:
    spark.conf.set("spark.sql.zorder.index.denyColumns", "name")
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    (segment,) = sketches.pointer(table)["sketches"]
    assert set(sketches.read(table, segment)) == {"key", "price"}
    assert sketches.stored(table) == [segment["file"]]
    assert opened(spark, table, "key = xxhash64(77L)") <= 2


def test_an_index_that_spark_queries(spark: SparkSession, table: Path) -> None:
    """If an index is too large for the driver, queries do not use its sketches."""
    spark.conf.set("spark.sql.zorder.index.driverLimit", "1")
    assert opened(spark, table, "key = xxhash64(77L)") == FILES


def segment_file(table: Path) -> Path:
    return table / "_zorder" / "_index" / sketches.segments(table)[0]


def changed(at: Callable[[int], int]) -> Callable[[Path], None]:
    def change(table: Path) -> None:
        data = bytearray(segment_file(table).read_bytes())
        data[at(len(data))] ^= 0xFF
        segment_file(table).write_bytes(bytes(data))

    return change


def pointing(**fields: object) -> Callable[[Path], None]:
    """Returns a function that changes fields of the pointer's only segment."""

    def edit(table: Path) -> None:
        content = sketches.pointer(table)
        content["sketches"][0].update(fields)
        max((table / "_zorder" / "_index").glob("_v*.json")).write_text(json.dumps(content))

    return edit


def linked(table: Path) -> None:
    target = table.parent / "elsewhere"
    segment_file(table).rename(target)
    segment_file(table).symlink_to(target)


def folder_instead(table: Path) -> None:
    segment_file(table).unlink()
    segment_file(table).mkdir()


def cut_to(length: int) -> Callable[[Path], None]:
    def cut(table: Path) -> None:
        segment_file(table).write_bytes(segment_file(table).read_bytes()[:length])

    return cut


def all_blocks(table: Path) -> None:
    data = bytearray(segment_file(table).read_bytes())
    end = sketches.pointer(table)["sketches"][0]["directory"]
    data[:end] = bytes(end)
    segment_file(table).write_bytes(bytes(data))


DAMAGE: dict[str, Callable[[Path], None]] = {
    "missing": lambda table: segment_file(table).unlink(),
    "empty": cut_to(0),
    "cut off": cut_to(99),
    "a folder": folder_instead,
    "a link": linked,
    "all blocks are zero": all_blocks,
    "the directory's last byte": changed(lambda length: length - 1),
    "a path": pointing(file="../../elsewhere"),
    "a path in the name": pointing(file="_sketch-1-../../elsewhere"),
    "no segment's name": pointing(file="_snapshot-1-x"),
    "a huge length": pointing(length=2**62, directory=0),
    "a negative length": pointing(length=-1),
    "a directory beyond the end": pointing(directory=2**40),
    "another directory": pointing(directory=5),
    "another checksum": pointing(crc32=1),
    "fields of other types": pointing(length="x", directory=[], crc32={}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_sketches_change_no_answer(spark: SparkSession, table: Path, damage: str) -> None:
    DAMAGE[damage](table)
    for condition in ("key = xxhash64(77L)", "name IN ('none', sha2('1300', 256))"):
        assert opened(spark, table, condition) == FILES
    assert opened(spark, table, "id = 77") == 1  # bounds are still used
    rows(spark, FILES * ROWS, 1).write.mode("append").parquet(str(table))
    assert opened(spark, table, f"id = {FILES * ROWS}") == 1
    assert opened(spark, table, f"key = xxhash64({FILES * ROWS}L)") >= 1


def test_random_damage_changes_no_answer(spark: SparkSession, table: Path) -> None:
    """Checksums detect a change of any byte in a segment, both in its blocks and in its
    directory."""
    original = segment_file(table).read_bytes()
    for i in range(12):
        random.seed(i)
        data = bytearray(original)
        data[random.randrange(len(data))] ^= random.randrange(1, 256)
        place = segment_file(table).with_name(f"_sketch-1-{i:08x}")
        place.write_bytes(bytes(data))
        pointing(file=place.name)(table)
        found = {opened(spark, table, f"key = xxhash64({j}L)") for j in range(0, 1600, 400)}
        assert found <= {1, 2, FILES}


def test_only_files_of_the_table_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A forged entry cannot make OPTIMIZE publish the values in a file outside the table."""
    table, secret = tmp_path / "t", tmp_path / "secret.parquet"
    rows(spark, 0, 80).write.parquet(str(table))
    secret.hardlink_to(data_files(table)[0])
    spark.conf.set(sketches.BUDGET, "0")
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "15k")
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    settings = indexes.table(spark, table)[0]["read_settings"]
    seen = secret.stat()
    entry = FileEntry(
        f"file:{secret}",
        seen.st_size,
        seen.st_mtime_ns // 1_000_000,
        ROWS,
        ("id",),
        settings,
        {IndexedColumn(("key",), "long"): ColumnStatistics((-(2**63), 2**63 - 1), null_count=0)},
    )
    snapshot_writer.publish(LocalStore(), TableFolder(str(table)), tuple, entries=[entry])
    spark.conf.set(sketches.BUDGET, "1")
    spark.sql(f"OPTIMIZE '{table}'")
    assert sketches.pointer(table)["sketched"] == ["key", "name", "price"]
    found = {row["path"]: row["sketch_file"] for row in indexes.table(spark, table)}
    assert found.pop(f"file:{secret}") is None and None not in found.values()
