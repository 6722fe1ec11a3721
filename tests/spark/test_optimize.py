"""OPTIMIZE keeps the rows of every kind of table, and the new files have narrow ranges."""

from __future__ import annotations

import decimal
from itertools import islice, permutations, product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.sampled import long
from tests.support.scans import opened
from tests.support.tables import aim_at, data_files, metrics, rows_of, sales, target_size

FORMATS = ["parquet", "orc"]


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize(
    ("external", "partitioned"),
    long(product([False, True], repeat=2), (False, True), (True, False)),
)
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
    aim_at(spark, folder, 12)
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
    folder = tmp_path / "t"
    sales(spark).write.format(provider).save(str(folder))
    before = rows_of(spark.read.format(provider).load(str(folder)))
    target_size(spark, 20_000)
    result = metrics(spark.sql(f"OPTIMIZE '{folder}' ZORDER BY a, s.x, d"))
    assert result["numFilesAdded"] == len(data_files(folder)) >= 3
    assert rows_of(spark.read.format(provider).load(str(folder))) == before
    result = metrics(spark.sql(f"OPTIMIZE {provider}.`{folder}` ZORDER BY (c)"))
    assert result["numFilesAdded"] == len(data_files(folder))
    assert rows_of(spark.read.format(provider).load(str(folder))) == before


def test_only_the_partitions_of_where(spark: SparkSession, database: str, tmp_path: Path) -> None:
    sales(spark).write.format("parquet").partitionBy("day").saveAsTable("t")
    old = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    before = rows_of(spark.table("t"))
    spark.sql("OPTIMIZE t WHERE day = 1 ZORDER BY (a)")
    new = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    assert new[0] == old[0] and new[2] == old[2] and new[1] != old[1]
    assert rows_of(spark.table("t")) == before


def test_batches_are_published_one_by_one(
    spark: SparkSession, database: str, tmp_path: Path
) -> None:
    """If a batch fails, the batches before it remain published, and the next OPTIMIZE continues
    with the remaining partitions."""
    sales(spark).write.format("parquet").partitionBy("day").saveAsTable("t")
    before = rows_of(spark.table("t"))
    old = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    size = sum(f.stat().st_size for f in old[0])
    spark.conf.set("spark.sql.zorder.optimize.batchSize", str(size))
    broken = old[1][0]
    content = broken.read_bytes()
    broken.with_name(f".{broken.name}.crc").unlink()
    broken.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    with pytest.raises(Exception, match=broken.name):
        spark.sql("OPTIMIZE t ZORDER BY (a)")
    broken.write_bytes(content)
    new = {day: data_files(tmp_path / "db" / "t" / f"day={day}") for day in range(3)}
    assert new[0] != old[0] and new[1] == old[1] and new[2] == old[2]
    done = metrics(spark.sql("OPTIMIZE t ZORDER BY (a)"))
    assert (done["numBatches"], done["partitionsOptimized"]) == (2, 2)
    assert done["numFilesRemoved"] == len(old[1] + old[2])
    assert rows_of(spark.table("t")) == before


def test_compaction_keeps_the_order_of_rows(spark: SparkSession, database: str) -> None:
    spark.range(0, 4000, 1, 8).write.format("parquet").saveAsTable("t")
    before = rows_of(spark.table("t"))
    result = metrics(spark.sql("OPTIMIZE t"))
    assert (result["numFilesRemoved"], result["numFilesAdded"]) == (8, 1)
    assert result["zOrderStats"] is None
    assert rows_of(spark.table("t")) == before
    assert metrics(spark.sql("OPTIMIZE t"))["numFilesAdded"] == 0


def test_jobs_are_described(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Jobs have a description in Spark's UI, and the user's own description is restored
    afterwards."""
    context = spark.sparkContext
    sales(spark).write.format("parquet").saveAsTable("t")
    context.setJobDescription("mine")
    try:
        for statement in ("OPTIMIZE t ZORDER BY (a)", "OPTIMIZE t", "RESTORE t TO BEFORE OPTIMIZE"):
            spark.sql(statement)
            assert context.getLocalProperty("spark.job.description") == "mine", statement
    finally:
        context.setLocalProperty("spark.job.description", None)
    assert context._jsc is not None
    jobs = context._jsc.sc().statusStore().jobsList(None)
    told = [jobs.apply(i).description() for i in range(jobs.size())]
    said = {str(text.get()) for text in told if text.isDefined()}
    folder = str(tmp_path / "db" / "t")
    for what in (
        ("OPTIMIZE", "sample the clustering columns"),
        ("OPTIMIZE", "lay out"),
        ("RESTORE", "copy"),
    ):
        assert any(f"{what[0]} " in text and f"{folder}: {what[1]}" in text for text in said), what


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
    aim_at(spark, tmp_path / "db" / "t", 16)
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
    target_size(spark, 30_000)
    spark.conf.set("spark.sql.zorder.optimize.curve", curve)
    result = metrics(spark.sql("OPTIMIZE t ZORDER BY (b, a)"))
    assert result["numFilesAdded"] > 1
    assert result["zOrderStats"]["strategyName"] == curve
    assert rows_of(spark.table("t")) == before


def test_the_direct_method(spark: SparkSession, database: str) -> None:
    sales(spark).write.format("parquet").saveAsTable("t")
    before = rows_of(spark.table("t"))
    target_size(spark, 30_000)
    spark.conf.set("spark.sql.zorder.optimize.method", "direct")
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (b, a)"))["numFilesAdded"] > 3
    assert rows_of(spark.table("t")) == before
    spark.conf.set("spark.sql.zorder.optimize.curve", "hilbert")
    with pytest.raises(Exception, match="boundaries"):
        spark.sql("OPTIMIZE t FULL ZORDER BY (b, a)").collect()


@pytest.mark.long
def test_the_direct_method_with_ever_other_columns(spark: SparkSession, database: str) -> None:
    """After many OPTIMIZE runs with different orders of the clustering columns, the index contains
    the z-values of only a limited number of clusterings, and is still readable."""
    spark.range(100).selectExpr("id", "-id b", "id % 7 c", "id % 5 d").write.saveAsTable("t")
    target_size(spark, 600)
    spark.conf.set("spark.sql.zorder.optimize.method", "direct")
    for columns in islice(permutations(["id", "b", "c", "d"]), 18):
        spark.sql(f"OPTIMIZE t FULL ZORDER BY ({', '.join(columns)})").collect()
    t = spark.table("t")
    assert len(opened(t.where("id = 7"))) < len(t.inputFiles())


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


@pytest.mark.parametrize("provider", long(FORMATS, FORMATS[0]))
@pytest.mark.parametrize("data_type", TYPES)
def test_types(spark: SparkSession, database: str, provider: str, data_type: str) -> None:
    spark.sql(f"CREATE TABLE t (k {data_type}, id BIGINT) USING {provider}")
    value = VALUES.get(data_type, f"cast(id - 50 as {data_type.split('(')[0]})")
    spark.sql(
        f"INSERT INTO t SELECT /*+ REPARTITION(2) */ if(id % 9 = 0, null, {value}), id FROM range(100)"
    )
    before = rows_of(spark.table("t"))
    target_size(spark, 500)
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


def test_decimal_order_in_files(spark: SparkSession, database: str) -> None:
    spark.sql(
        "CREATE TABLE t USING parquet AS SELECT cast(id - 500 as decimal(5,1)) / 10 k FROM range(1000)"
    )
    target_size(spark, 900)
    spark.sql("OPTIMIZE t ZORDER BY (k)")
    ends = spark.table("t").groupBy(F.input_file_name()).agg(F.min("k"), F.max("k")).collect()
    ordered = sorted((low, high) for _, low, high in ends)
    assert len(ordered) > 1
    assert all(a[1] < b[0] for a, b in zip(ordered, ordered[1:], strict=False))
    assert ordered[0][0] == decimal.Decimal("-50")


@pytest.mark.parametrize("period", [1, 2, 4])
def test_a_heavy_value_that_comes_again_and_again(
    spark: SparkSession, database: str, tmp_path: Path, period: int
) -> None:
    """Rows with a frequent value are distributed evenly over the files, even if the value occurs at
    regular intervals."""
    rows = spark.range(0, 40_000, 1, 1).selectExpr(
        f"if(id % {period} = 0, 0, id) AS a", "xxhash64(id) AS payload"
    )
    rows.write.saveAsTable("t")
    aim_at(spark, tmp_path / "db" / "t", 8)
    spark.sql("OPTIMIZE t ZORDER BY (a)")
    counts = [
        row["count"] for row in spark.table("t").groupBy(F.input_file_name()).count().collect()
    ]
    assert len(counts) == 8
    assert max(counts) < 1.2 * min(counts)


def test_no_more_files_than_rows(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.range(20).write.format("parquet").saveAsTable("t")
    target_size(spark, 1)
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (id)"))["numFilesAdded"] <= 20
    assert spark.table("t").count() == 20


def test_rows_stay_in_their_folders(spark: SparkSession, tmp_path: Path) -> None:
    """If a table is read recursively and its folders are not partitions, rows remain in their
    folders."""
    folder = tmp_path / "t"
    for name in ("x", "x/y", "z"):
        spark.range(100).selectExpr("id", f"'{name}' AS name").write.parquet(str(folder / name))
    spark.sql(
        f"CREATE TABLE deep USING parquet OPTIONS (recursiveFileLookup 'true') LOCATION '{folder}'"
    )
    spark.sql("OPTIMIZE deep ZORDER BY (id)")
    assert spark.table("deep").where("id = 7").count() == 3
    for name in ("x", "x/y", "z"):
        there = spark.read.parquet(str(folder / name)).select("name").distinct().collect()
        assert there == [(name,)]
    spark.sql("DROP TABLE deep")


def test_full_needs_columns(spark: SparkSession, database: str) -> None:
    spark.range(20).write.saveAsTable("t")
    with pytest.raises(Exception, match="ZORDER_FULL_WITHOUT_COLUMNS"):
        spark.sql("OPTIMIZE t FULL")
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('zorder.clusterBy' = 'id')")
    assert metrics(spark.sql("OPTIMIZE t FULL"))["numFilesAdded"]


def test_too_many_columns(spark: SparkSession, database: str) -> None:
    names = [f"c{i}" for i in range(64)]
    spark.range(1).selectExpr(*(f"id AS {n}" for n in names)).write.saveAsTable("t")
    with pytest.raises(Exception, match="ZORDER_TOO_MANY_COLUMNS"):
        spark.sql(f"OPTIMIZE t ZORDER BY ({', '.join(names)})")
    assert metrics(spark.sql(f"OPTIMIZE t ZORDER BY ({', '.join(names[:63])})"))["numFilesAdded"]


def test_a_table_limits_the_columns_with_statistics(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE t USING parquet TBLPROPERTIES ('zorder.index.maxColumns' = '1') AS "
              "SELECT id AS a, id AS b, id AS c FROM range(20)")  # fmt: skip
    assert metrics(spark.sql("OPTIMIZE t ZORDER BY (c)"))["numTableColumnsWithStats"] == 2  # a, c


@pytest.mark.parametrize(
    ("key", "value"),
    [("targetFileSize", "0"), ("targetFileSize", "abc"), ("targetFileSize", "-5"),
     ("curve", "peano"), ("method", "x")],
)  # fmt: skip
def test_a_bad_setting_is_named(spark: SparkSession, key: str, value: str) -> None:
    with pytest.raises(Exception, match=f"{value}.*spark.sql.zorder.optimize.{key}.*It must be"):
        spark.conf.set(f"spark.sql.zorder.optimize.{key}", value)
