"""With the direct method, files are also skipped by their minimum and maximum z-values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support import indexes, scans
from tests.support.sampled import long
from tests.support.tables import aim_at, data_files

COLUMNS = {
    "bigint": ("xxhash64(id) % 1000", "xxhash64(id, 1) % 1000"),
    "double": (
        "if(id % 9 = 0, NULL, if(id % 11 = 0, double('NaN'), (xxhash64(id) % 1000) / 8D))",
        "(xxhash64(id, 1) % 1000) / 8D",
    ),
    "string": ("concat('ab', lpad(id % 700, 3, '0'))", "if(id % 13 = 0, NULL, hex(hash(id)))"),
    "decimal(9,2)": ("CAST(hash(id) % 10000 AS DECIMAL(9,2)) / 7", "CAST(id AS DECIMAL(9,2))"),
    "decimal(25,3)": ("CAST(hash(id) AS DECIMAL(25,3)) / 7", "CAST(id AS DECIMAL(25,3))"),
    "timestamp": ("timestamp_seconds(hash(id))", "timestamp_seconds(id * 1000)"),
}

PREDICATES = [
    "a = {0}", "{0} = b", "a IN ({0}, {1})", "a > {0} AND b < {1}", "a BETWEEN {0} AND {1}",
    "a IS NULL", "a IS NULL AND b > {1}", "NOT (a >= {0} OR b = {1})", "a <=> {0} AND b IS NOT NULL",
    "a < {0} OR a > {1}", "(a < {0} AND b < {1}) OR (a > {1} AND b > {0})",
]  # fmt: skip


def laid_out(
    spark: SparkSession, folder: Path, data_type: str = "bigint", provider: str = "parquet"
) -> None:
    a, b = (f"CAST({c} AS {data_type})" for c in COLUMNS[data_type])
    spark.range(0, 3000, 1, 2).selectExpr(f"{a} AS a", f"{b} AS b").write.format(provider).save(
        str(folder)
    )
    aim_at(spark, folder, 24)
    spark.conf.set("spark.sql.zorder.optimize.method", "direct")
    spark.sql(f"OPTIMIZE {provider}.`{folder}` ZORDER BY (a, b)")


@pytest.fixture(scope="module")
def folder_of(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Path]:
    """Returns the folder of a table with the given type and provider. Creates the table on first
    use."""

    @cache
    def folder_of(data_type: str, provider: str) -> Path:
        folder = tmp_path_factory.mktemp("direct") / "t"
        laid_out(spark, folder, data_type, provider)
        return folder

    return folder_of


@pytest.mark.parametrize(
    ("data_type", "provider"),
    long(
        [*((t, "parquet") for t in COLUMNS), ("bigint", "orc")],
        ("string", "parquet"), ("decimal(25,3)", "parquet"), ("bigint", "orc"),
    ),
)  # fmt: skip
def test_sound(
    spark: SparkSession, folder_of: Callable[[str, str], Path], data_type: str, provider: str
) -> None:
    folder = folder_of(data_type, provider)
    spark.read.format(provider).load(str(folder)).createOrReplaceTempView("direct_t")
    drawn = spark.sql("SELECT a, b FROM direct_t WHERE a = a AND b = b ORDER BY hash(a, b) LIMIT 3")
    values = [
        f"CAST('{value}' AS {data_type})"
        for row in drawn.collect()
        for value in (row["a"], row["b"])
    ]
    asked = [p.format(x, y) for p in PREDICATES for x, y in zip(values, values[1:], strict=False)]
    if data_type == "string":
        asked += ["a LIKE 'ab1%'", "a LIKE 'ab%' AND b LIKE 'F%'", "b LIKE 'FFFFFFFFFFFF%'"]
    if data_type.startswith("decimal"):
        asked += ["a < 0.12345BD", "b = 7.12345BD", "a > CAST('1e30' AS DECIMAL(38,5)) OR b < 3"]
    scans.check_sound(spark, "direct_t", asked)


def test_fewer_files_than_by_minima_and_maxima(
    spark: SparkSession, folder_of: Callable[[str, str], Path]
) -> None:
    folder = folder_of("bigint", "parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView("direct_t")
    entries = indexes.loaded(spark, folder)
    assert len(entries) == len(data_files(folder)) >= 20
    assert all(
        e["zorder_value(a, b)_minValue"] <= e["zorder_value(a, b)_maxValue"] for e in entries
    )
    opened = by_bounds = 0
    for low in range(-900, 900, 60):
        box = {"a": (low, low + 100), "b": (-low, -low + 100)}
        text = " AND ".join(f"{c} BETWEEN {x} AND {y}" for c, (x, y) in box.items())
        opened += len(scans.opened(spark.sql(f"SELECT * FROM direct_t WHERE {text}")))
        by_bounds += sum(
            all(e[f"{c}_minValue"] <= y and x <= e[f"{c}_maxValue"] for c, (x, y) in box.items())
            for e in entries
        )
    assert 0 < opened < 0.9 * by_bounds


def test_it_is_no_column_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    laid_out(spark, tmp_path / "t")
    described = spark.sql(f"DESCRIBE SKIPPING INDEX ON '{tmp_path}/t'").collect()
    assert [row["column"] for row in described] == ["a", "b"]
    spark.range(5).selectExpr("id AS a", "-id AS b").write.mode("append").parquet(f"{tmp_path}/t")
    spark.sql(f"REFRESH SKIPPING INDEX ON '{tmp_path}/t'")
    spark.conf.set("spark.sql.zorder.optimize.method", "boundaries")
    spark.sql(f"OPTIMIZE '{tmp_path}/t' ZORDER BY (b)")
    table = spark.read.parquet(f"{tmp_path}/t")
    assert table.where("a BETWEEN -20 AND 20").count() > 0
    assert table.where("a = 3 AND b = -3").count() >= 1
    scans.check_sound(spark, f"parquet.`{tmp_path}/t`", ["a = 3", "b < 0 AND a > 0"])
