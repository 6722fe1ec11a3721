"""OPTIMIZE end to end: on every kind of table it keeps the rows, and files become narrow."""

from __future__ import annotations

import decimal
import glob
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.spark import scans

FORMATS = ["parquet", "orc"]


def rows_of(df: DataFrame) -> Counter[str]:
    """The rows as a multiset, NaN equal to itself; PySpark cannot collect year-month intervals."""
    readable = [
        F.col(f"`{f.name}`").cast("string")
        if "year" in f.dataType.simpleString()
        else f"`{f.name}`"
        for f in df.schema.fields
    ]
    return Counter(map(repr, df.select(*readable).collect()))


def data_files(folder: Path | str) -> list[str]:
    """The data files that any engine would see below a folder."""
    found = glob.glob(f"{folder}/**/*", recursive=True)
    visible = [
        f for f in found if not any(p[0] in "_." for p in os.path.relpath(f, folder).split("/"))
    ]
    return sorted(f for f in visible if os.path.isfile(f))


def metrics(df: DataFrame) -> Any:
    """The metrics of the one row that OPTIMIZE returns."""
    (row,) = df.collect()
    return row["metrics"]


def sales(spark: SparkSession, rows: int = 6000) -> DataFrame:
    """Rows with keys of several types; every column has nulls."""
    df = spark.range(0, rows, 1, 3).select(
        (F.xxhash64("id") % 1000).cast("int").alias("a"),
        F.concat(F.lit("key-"), F.hash("id") % 500).alias("b"),
        (F.xxhash64("id", F.lit(7)) % 100000).cast("decimal(12,2)").alias("c"),
        F.expr("date_add(date'2020-01-01', cast(id % 900 as int))").alias("d"),
        F.expr("named_struct('x', cast(id % 77 as double), 'y', id)").alias("s"),
        F.expr("array(id, id + 1)").alias("list"),
        (F.col("id") % 3).cast("int").alias("day"),
    )
    return df.select(
        *[F.when(F.rand(3) > 0.05, F.col(n)).alias(n) for n in ("a", "b", "c", "d", "s", "list")],
        "day",
    )


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database of the test's own, the current one meanwhile."""
    spark.sql("CREATE DATABASE optimize_test LOCATION '" + str(tmp_path / "db") + "'")
    spark.sql("USE optimize_test")
    yield "optimize_test"
    spark.sql("USE default")
    spark.sql("DROP DATABASE optimize_test CASCADE")


def small_files(spark: SparkSession, size: int) -> None:
    spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(size))


@pytest.fixture(autouse=True)
def settings(spark: SparkSession) -> Iterator[None]:
    yield
    for key in ("targetFileSize", "curve", "method"):
        spark.conf.unset(f"spark.sql.zorder.optimize.{key}")


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("partitioned", [False, True])
def test_catalog_tables(
    spark: SparkSession,
    database: str,
    tmp_path: Path,
    provider: str,
    external: bool,
    partitioned: bool,
) -> None:
    writer = sales(spark).write.format(provider)
    if partitioned:
        writer = writer.partitionBy("day")
    if external:
        writer = writer.option("path", str(tmp_path / "elsewhere"))
    writer.saveAsTable("t")
    folder = tmp_path / "elsewhere" if external else tmp_path / "db" / "t"
    before = rows_of(spark.table("t"))
    columns = spark.table("t").columns
    old = data_files(folder)
    small_files(spark, sum(map(os.path.getsize, old)) // 12)
    result = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b)"))
    new = data_files(folder)
    assert result["numFilesRemoved"] == len(old)
    assert result["numFilesAdded"] == len(new)
    assert result["partitionsOptimized"] == (3 if partitioned else 1)
    assert not set(old) & set(new)
    assert 10 <= len(new) <= 14
    assert rows_of(spark.table("t")) == before
    assert spark.table("t").columns == columns
    plain = spark.read.format(provider).load(str(folder)).select(columns)
    assert rows_of(plain) == before
    again = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b)"))
    assert again["numFilesAdded"] == again["numFilesRemoved"] == 0
    assert again["totalConsideredFiles"] == len(new)
    assert data_files(folder) == new
    full = metrics(spark.sql("OPTIMIZE t FULL ZORDER BY (a, b)"))
    assert full["numFilesRemoved"] == len(new)
    assert rows_of(spark.table("t")) == before


@pytest.mark.parametrize("provider", FORMATS)
def test_paths(spark: SparkSession, tmp_path: Path, provider: str) -> None:
    folder = str(tmp_path / "t")
    sales(spark).write.format(provider).save(folder)
    before = rows_of(spark.read.format(provider).load(folder))
    small_files(spark, 20_000)
    result = metrics(spark.sql(f"OPTIMIZE '{folder}' ZORDER BY a, s.x, d"))
    assert result["numFilesAdded"] == len(data_files(folder)) >= 3
    assert rows_of(spark.read.format(provider).load(folder)) == before
    result = metrics(spark.sql(f"OPTIMIZE {provider}.`{folder}` ZORDER BY (c)"))
    assert result["numFilesAdded"] == len(data_files(folder))
    assert rows_of(spark.read.format(provider).load(folder)) == before


def test_only_the_partitions_of_where(spark: SparkSession, database: str, tmp_path: Path) -> None:
    sales(spark).write.format("parquet").partitionBy("day").saveAsTable("t")
    old = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    before = rows_of(spark.table("t"))
    spark.sql("OPTIMIZE t WHERE day = 1 ZORDER BY (a)")
    new = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    assert new[0] == old[0] and new[2] == old[2] and new[1] != old[1]
    assert rows_of(spark.table("t")) == before


def test_compaction_keeps_the_order_of_rows(spark: SparkSession, database: str) -> None:
    spark.range(0, 4000, 1, 8).write.format("parquet").saveAsTable("t")
    before = rows_of(spark.table("t"))
    result = metrics(spark.sql("OPTIMIZE t"))
    assert (result["numFilesRemoved"], result["numFilesAdded"]) == (8, 1)
    assert result["zOrderStats"] is None
    assert rows_of(spark.table("t")) == before
    assert metrics(spark.sql("OPTIMIZE t"))["numFilesAdded"] == 0


def test_dry_run_touches_nothing(spark: SparkSession, database: str, tmp_path: Path) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    found = sorted(glob.glob(str(tmp_path / "db" / "t" / "**"), recursive=True))
    result = metrics(spark.sql("OPTIMIZE t ZORDER BY (a) DRY RUN"))
    assert result["dryRun"] and result["numFilesRemoved"] == 3
    assert sorted(glob.glob(str(tmp_path / "db" / "t" / "**"), recursive=True)) == found


@pytest.mark.parametrize(("method", "curve"), [("boundaries", "zorder"), ("direct", "zorder"),
                                               ("boundaries", "linear")])  # fmt: skip
def test_a_dry_run_estimates_what_queries_open(
    spark: SparkSession, database: str, tmp_path: Path, method: str, curve: str
) -> None:
    """The estimates, made from a sample, against the files that are written afterwards."""
    spark.range(0, 60_000, 1, 4).selectExpr(
        "cast(xxhash64(id) % 100000 as int) a", "cast(xxhash64(id, 1) % 100000 as double) b"
    ).write.format("parquet").saveAsTable("t")
    size = sum(map(os.path.getsize, data_files(tmp_path / "db" / "t")))
    small_files(spark, size // 25)
    spark.conf.set("spark.sql.zorder.optimize.method", method)
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    planned = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b) DRY RUN"))
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (a, b)"))
    assert planned["numFilesRemoved"] == done["numFilesRemoved"] == 4
    assert planned["numFilesAdded"] == pytest.approx(done["numFilesAdded"], abs=1)
    assert planned["filesAdded"]["totalSize"] == pytest.approx(size, rel=0.01)
    assert done["openedShares"] is None
    described = {row["column"]: row for row in spark.sql("DESC SKIPPING INDEX ON t").collect()}
    for shares in planned["openedShares"]:
        column = described[shares["column"]]
        assert shares["lookupBefore"] > 0.99 and shares["rangeBefore"] > 0.99
        files = [
            pq.read_table(f, columns=[shares["column"]]) for f in data_files(tmp_path / "db/t")
        ]
        bounds = [(min(v), max(v)) for f in files for v in [f[shares["column"]].to_pylist()]]
        wanted = [v for f in files for v in f[shares["column"]].to_pylist()[::50]]
        opened = sum(low <= v <= high for v in wanted for low, high in bounds)
        truth = opened / len(wanted) / len(files)
        assert shares["lookupAfter"] == pytest.approx(truth, rel=0.15)
        assert column["lookup_share"] == pytest.approx(truth, rel=0.15)
        assert shares["lookupAfter"] < shares["rangeAfter"] <= shares["lookupAfter"] + 0.0101
        assert column["lookup_share"] < column["range_share"]


def test_describe_says_whether_another_optimize_would_help(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    spark.sql("CREATE SKIPPING INDEX ON t")

    def described() -> dict[str, Any]:
        return {row["column"]: row for row in spark.sql("DESC SKIPPING INDEX ON t").collect()}

    before = described()
    assert {row["advice"] for row in before.values()} == {None}
    assert before["a"]["clustered"] == 0 and before["a"]["last_optimize"] is None
    size = sum(map(os.path.getsize, data_files(tmp_path / "db" / "t")))
    small_files(spark, size // 12)
    spark.sql("OPTIMIZE t ZORDER BY (a, b)")
    after = described()
    assert after["a"]["clustered"] == after["a"]["files"] == len(data_files(tmp_path / "db" / "t"))
    assert after["a"]["last_optimize"] is not None
    assert "nothing to do" in after["a"]["advice"] and after["a"]["advice"] == after["b"]["advice"]
    assert after["c"]["advice"] is None and after["c"]["clustered"] == 0
    sales(spark, 300).write.mode("append").format("parquet").saveAsTable("t")
    assert "would lay out 3 new files" in described()["a"]["advice"]


def test_an_empty_table(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE t (a INT, b STRING) USING parquet")
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))["numFilesAdded"] == 0
    spark.sql("INSERT INTO t SELECT 1, 'x' WHERE false")
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))["numFilesAdded"] == 0
    assert spark.table("t").count() == 0


def test_files_are_narrow(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(0, 100_000, 1, 4).selectExpr(
        "cast(xxhash64(id) % 100000 as int) a", "cast(xxhash64(id, 1) % 100000 as int) b"
    ).write.format("parquet").saveAsTable("t")
    size = sum(map(os.path.getsize, data_files(tmp_path / "db" / "t")))
    small_files(spark, size // 16)
    spark.sql("OPTIMIZE t ZORDER BY (a, b)")
    ranges = (
        spark.table("t")
        .groupBy(F.input_file_name())
        .agg(F.max("a") - F.min("a"), F.max("b") - F.min("b"), F.count("*"))
        .collect()
    )
    assert len(ranges) == 16
    assert all(width_a < 70_000 and width_b < 70_000 for _, width_a, width_b, _ in ranges)
    assert all(4500 < count < 8000 for *_, count in ranges)


@pytest.mark.parametrize("curve", ["hilbert", "linear"])
@pytest.mark.parametrize("provider", FORMATS)
def test_curves(spark: SparkSession, database: str, curve: str, provider: str) -> None:
    sales(spark).write.format(provider).saveAsTable("t")
    before = rows_of(spark.table("t"))
    small_files(spark, 30_000)
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    result = metrics(spark.sql("OPTIMIZE t ZORDER BY (b, a)"))
    assert result["numFilesAdded"] > 1
    assert result["zOrderStats"]["strategyName"] == curve
    assert rows_of(spark.table("t")) == before


def test_the_direct_method(spark: SparkSession, database: str) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    before = rows_of(spark.table("t"))
    small_files(spark, 30_000)
    spark.conf.set("spark.sql.zorder.optimize.method", "direct")
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (b, a)"))["numFilesAdded"] > 3
    assert rows_of(spark.table("t")) == before
    spark.conf.set("spark.sql.zorder.optimize.curve", "hilbert")
    with pytest.raises(Exception, match="boundaries"):
        spark.sql("OPTIMIZE t FULL ZORDER BY (b, a)").collect()


TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)",
    "decimal(38,10)", "date", "timestamp", "timestamp_ntz", "string", "varchar(9)", "char(9)",
    "binary", "interval year to month", "interval day to second",
]  # fmt: skip

VALUES = {
    "boolean": "id % 2 = 0",
    "float": "case id % 5 when 0 then float('nan') when 1 then -0.0f else cast(id - 50 as float) end",
    "double": "case id % 5 when 0 then double('nan') when 1 then -0.0d else id - 50d end",
    "date": "date_add(date'1500-01-01', cast(id * 1700 as int))",
    "timestamp": "timestamp_seconds(id * 100000000 - 10000000000)",
    "timestamp_ntz": "cast(timestamp_seconds(id * 1000000) as timestamp_ntz)",
    "varchar(9)": "cast(id - 50 as string)",
    "char(9)": "cast(id - 50 as string)",
    "binary": "cast(cast(id as string) as binary)",
    "interval year to month": "make_ym_interval(0, cast(id - 50 as int))",
    "interval day to second": "make_dt_interval(0, 0, cast(id - 50 as int))",
}


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize("data_type", TYPES)
def test_types(spark: SparkSession, database: str, provider: str, data_type: str) -> None:
    spark.sql(f"CREATE TABLE t (k {data_type}, id BIGINT) USING {provider}")
    value = VALUES.get(data_type, f"cast(id - 50 as {data_type.split('(')[0]})")
    spark.sql(
        f"INSERT INTO t SELECT /*+ REPARTITION(2) */ if(id % 9 = 0, null, {value}), id FROM range(100)"
    )
    before = rows_of(spark.table("t"))
    small_files(spark, 500)
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (k)"))["numFilesAdded"] > 1
    assert rows_of(spark.table("t")) == before


def test_partitions_with_their_own_location(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql("CREATE TABLE t (a INT, day INT) USING parquet PARTITIONED BY (day)")
    spark.sql(f"ALTER TABLE t ADD PARTITION (day=1) LOCATION '{tmp_path}/far/one'")
    for _ in range(2):
        spark.sql("INSERT INTO t SELECT id, id % 2 FROM range(100)")
    before = rows_of(spark.table("t"))
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert len(data_files(tmp_path / "far" / "one")) == 1
    assert rows_of(spark.table("t")) == before


def test_columns_the_table_does_not_declare(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE t (a INT) USING parquet LOCATION '{tmp_path}/t'")
    spark.range(5).selectExpr("cast(id as int) a", "id extra").write.parquet(
        f"{tmp_path}/t", mode="append"
    )
    with pytest.raises(Exception, match="extra"):
        spark.sql("OPTIMIZE t ZORDER BY (a)").collect()
    assert rows_of(spark.read.parquet(f"{tmp_path}/t").select("extra")) == rows_of(
        spark.range(5).selectExpr("id extra")
    )


def test_added_columns_keep_their_default(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE t (a INT) USING parquet")
    spark.sql("INSERT INTO t VALUES (1), (2)")
    spark.sql("ALTER TABLE t ADD COLUMNS (b INT DEFAULT 5, c STRING)")
    spark.sql("INSERT INTO t VALUES (3, 7, 'x')")
    before = rows_of(spark.table("t"))
    spark.sql("OPTIMIZE t ZORDER BY (b)")
    assert rows_of(spark.table("t")) == before


@pytest.mark.parametrize(("provider", "codec"), [("parquet", "gzip"), ("orc", "zstd")])
def test_the_codec_stays(
    spark: SparkSession, database: str, tmp_path: Path, provider: str, codec: str
) -> None:
    sales(spark).write.format(provider).option("compression", codec).save(str(tmp_path / "x"))
    spark.sql(f"CREATE TABLE t USING {provider} LOCATION '{tmp_path}/x'")
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert all(
        codec[:2] in os.path.basename(f).rsplit("-", 1)[1] for f in data_files(tmp_path / "x")
    )


def test_row_groups_are_small(spark: SparkSession, tmp_path: Path) -> None:
    """The order inside a file makes them narrow; a table that names a size keeps it."""
    folder = tmp_path / "t"
    spark.range(0, 60_000, 1, 2).selectExpr(
        "xxhash64(id) AS a", "xxhash64(a) AS b",
        "array_join(transform(sequence(1, 16), i -> sha2(CAST(id * i AS STRING), 256)), '') AS c",
    ).write.parquet(str(folder))  # fmt: skip
    spark.sql(f"OPTIMIZE '{folder}' ZORDER BY (a, b)")
    (file,) = data_files(folder)
    groups = pq.ParquetFile(file).metadata
    assert groups.num_row_groups >= 2
    widths = [groups.row_group(i).column(0).statistics for i in range(groups.num_row_groups)]
    assert any(s.max - s.min < 0.6 * 2**64 for s in widths)
    spark.sql(f"CREATE TABLE t_groups USING parquet OPTIONS ('parquet.block.size' 4000000) "
              f"LOCATION '{folder}'")  # fmt: skip
    try:
        spark.sql("OPTIMIZE t_groups FULL ZORDER BY (a, b)")
        assert pq.ParquetFile(data_files(folder)[0]).metadata.num_row_groups >= 8
    finally:
        spark.sql("DROP TABLE t_groups")


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"])
def test_the_timestamp_type_stays(
    spark: SparkSession, database: str, tmp_path: Path, kind: str
) -> None:
    with scans.settings(spark, spark__sql__parquet__outputTimestampType=kind):
        spark.sql("SELECT timestamp_seconds(id) ts FROM range(50)").write.parquet(f"{tmp_path}/x")
    spark.sql(f"CREATE TABLE t USING parquet LOCATION '{tmp_path}/x'")
    spark.sql("OPTIMIZE t ZORDER BY (ts)")
    (file,) = data_files(tmp_path / "x")
    column = pq.ParquetFile(file).schema.column(0)
    expected = {"INT96": "INT96", "TIMESTAMP_MICROS": "microseconds",
                "TIMESTAMP_MILLIS": "milliseconds"}[kind]  # fmt: skip
    assert expected in str(column)


def test_cached_tables_and_frames(spark: SparkSession, database: str) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    frame = spark.table("t").where("a > 100")
    before = rows_of(frame)
    spark.sql("CACHE TABLE t")
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    assert rows_of(frame) == before
    assert rows_of(spark.table("t").where("a > 100")) == before
    spark.sql("UNCACHE TABLE t")
    assert rows_of(spark.table("t").where("a > 100")) == before


def test_what_others_append_meanwhile_is_clustered_next_time(
    spark: SparkSession, database: str
) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    sales(spark, 100).write.format("parquet").mode("append").saveAsTable("t")
    before = rows_of(spark.table("t"))
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))["numFilesAdded"] == 1
    assert rows_of(spark.table("t")) == before


@pytest.mark.parametrize(
    ("setting", "value", "column"),
    [
        ("spark.sql.parquet.binaryAsString", "true", pa.array([b"a", b"b"])),
        ("spark.sql.legacy.parquet.nanosAsLong", "true", pa.array([1, 2], pa.timestamp("ns"))),
        ("spark.sql.parquet.inferTimestampNTZ.enabled", "false",
         pa.array([1, 2], pa.timestamp("us"))),
    ],
)  # fmt: skip
def test_a_setting_that_would_change_the_files_types(
    spark: SparkSession, tmp_path: Path, setting: str, value: str, column: pa.Array
) -> None:
    for name in "ab":
        pq.write_table(pa.table({"k": [1, 2], "c": column}), tmp_path / f"{name}.parquet")
    before = data_files(tmp_path)
    with (
        scans.settings(spark, **{setting: value}),
        pytest.raises(AnalysisException, match=f"ZORDER_SETTING_CHANGES_TYPES.*{setting}.* c "),
    ):
        spark.sql(f"OPTIMIZE '{tmp_path}' ZORDER BY (k)")
    assert data_files(tmp_path) == before


def test_decimal_order_in_files(spark: SparkSession, database: str) -> None:
    spark.sql(
        "CREATE TABLE t USING parquet AS SELECT cast(id - 500 as decimal(5,1)) / 10 k FROM range(1000)"
    )
    small_files(spark, 900)
    spark.sql("OPTIMIZE t ZORDER BY (k)")
    ends = spark.table("t").groupBy(F.input_file_name()).agg(F.min("k"), F.max("k")).collect()
    ordered = sorted((low, high) for _, low, high in ends)
    assert len(ordered) > 1
    assert all(a[1] < b[0] for a, b in zip(ordered, ordered[1:], strict=False))
    assert ordered[0][0] == decimal.Decimal("-50")


def test_no_more_files_than_rows(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(20).write.format("parquet").saveAsTable("t")
    small_files(spark, 1)
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)"))["numFilesAdded"] <= 20
    assert spark.table("t").count() == 20


def test_too_many_columns(spark: SparkSession, database: str) -> None:
    names = [f"c{i}" for i in range(64)]
    spark.range(1).selectExpr(*(f"id AS {n}" for n in names)).write.saveAsTable("t")
    with pytest.raises(Exception, match="ZORDER_TOO_MANY_COLUMNS"):
        spark.sql(f"OPTIMIZE t ZORDER BY ({', '.join(names)})")
    assert metrics(spark.sql(f"OPTIMIZE t ZORDER BY ({', '.join(names[:63])})"))["numFilesAdded"]


@pytest.mark.parametrize(
    ("key", "value"),
    [("targetFileSize", "0"), ("targetFileSize", "abc"), ("targetFileSize", "-5"),
     ("curve", "peano"), ("method", "x")],
)  # fmt: skip
def test_a_bad_setting_is_named(spark: SparkSession, key: str, value: str) -> None:
    with pytest.raises(Exception, match=f"{value}.*spark.sql.zorder.optimize.{key}.*It must be"):
        spark.conf.set(f"spark.sql.zorder.optimize.{key}", value)
