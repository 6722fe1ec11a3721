"""Conditions that sqlglot and Spark read each in its own way: the fallback loses no row by them."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from pyzorder import fallback
from tests.spark import scans

#: Each holds for some of the rows below.
CONDITIONS = """
s IS NOT FALSE
NOT (s <=> false)
(p <=> q < r) IS NULL
(p <=> q IN (NULL)) IS NULL
(p BETWEEN false AND q <=> r) IS NULL
p <=> q <= r
(p BETWEEN true AND q = r) IS NOT NULL
NOT (p BETWEEN true AND q = r)
"""

#: Of Spark 4 and later.
CONDITIONS_OF_4 = """
concat(*) != 'x'
"""

#: p, q, r: a file each.
ROWS = ["false, true, NULL", "true, true, NULL", "NULL, true, true", "false, false, true"]


def test_no_row_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for row in ROWS:
        spark.sql(
            "SELECT CAST(p AS BOOLEAN) p, CAST(q AS BOOLEAN) q, CAST(r AS BOOLEAN) r, 'abc' s "
            f"FROM VALUES ({row}) AS t(p, q, r)"
        ).coalesce(1).write.mode("append").parquet(path)
    fallback.create_index(spark, path)
    asked = CONDITIONS if spark.version.startswith("3.") else CONDITIONS + CONDITIONS_OF_4
    with scans.settings(spark, spark__sql__ansi__enabled="false"):
        for condition in filter(None, asked.splitlines()):
            found = fallback.read(spark, path).where(condition).count()
            with scans.plain(spark):
                expected = spark.read.parquet(path).where(condition).count()
            assert found == expected > 0, condition
