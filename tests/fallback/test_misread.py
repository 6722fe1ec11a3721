"""The fallback finds all matching rows even if sqlglot and Spark parse a condition differently."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from pyzorder import fallback
from tests.support import scans

#: Conditions that are TRUE for some of the rows below.
CONDITIONS = """
s IS NOT FALSE
NOT (s <=> false)
(p <=> q < r) IS NULL
(p <=> q IN (NULL)) IS NULL
(p BETWEEN false AND q <=> r) IS NULL
p <=> q <= r
(p BETWEEN true AND q = r) IS NOT NULL
NOT (p BETWEEN true AND q = r)
i < 123456789012345678901 AND p IS NULL
i <= 123456789012345678901BD AND p IS NULL
i + 1 > - 123456789012345678901 AND p IS NULL
123456789012345678901.5 >= (i) AND p IS NULL
i BETWEEN - 123456789012345678901 AND 123456789012345678901 AND p IS NULL
NOT (i > 123456789012345678901) AND p IS NULL
(i > 123456789012345678901) IS FALSE AND p IS NULL
(i < 123456789012345678901) IS NOT NULL AND p IS NULL
"""

#: Conditions that need Spark 4 or later.
CONDITIONS_OF_4 = """
concat(*) != 'x'
"""

#: The values of p, q, r and i in the single row of each file.
ROWS = [
    "false, true, NULL, 1", "true, true, NULL, 2", "NULL, true, true, NULL", "false, false, true, 3"
]  # fmt: skip


def test_no_row_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for row in ROWS:
        spark.sql(
            "SELECT CAST(p AS BOOLEAN) p, CAST(q AS BOOLEAN) q, CAST(r AS BOOLEAN) r, "
            f"CAST(i AS INT) i, 'abc' s FROM VALUES ({row}) AS t(p, q, r, i)"
        ).coalesce(1).write.mode("append").parquet(path)
    fallback.create_index(spark, path)
    asked = CONDITIONS if spark.version.startswith("3.") else CONDITIONS + CONDITIONS_OF_4
    with scans.settings(spark, spark__sql__ansi__enabled="false"):
        for condition in filter(None, asked.splitlines()):
            found = fallback.read(spark, path).where(condition).count()
            with scans.plain(spark):
                expected = spark.read.parquet(path).where(condition).count()
            assert found == expected > 0, condition
