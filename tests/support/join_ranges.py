"""Three tables with the same rows, for tests in which the key ranges of files on one side of a join
are used to skip files on the other side.

The tables `a`, `b` and `c` have 20 files each, and their keys are the numbers from 0 to 399, with
20 keys per file. The column `part` is the number of the file, so `part < 3` leaves three files with
the keys from 0 to 59. Conditions do not use key columns, because Spark itself would derive
conditions on the other side from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.indexes import build
from tests.support.joins import select_list
from tests.support.scans import settings

ALL = 20
NAMES = ("a", "b", "c")
COLUMNS = """
    CAST(id AS INT) AS k, id AS l, CAST(id DIV 20 AS INT) AS part, CAST(id % 7 AS INT) AS m,
    format_string('s%05d', id) AS s, date_add(date'2020-01-01', CAST(id AS INT)) AS d,
    CAST(id AS DECIMAL(10, 2)) AS dec, named_struct('k', CAST(id AS INT)) AS st,
    CASE WHEN id % 9 = 4 OR id DIV 20 = 6 THEN NULL ELSE CAST(id AS INT) END AS n,
    CASE WHEN id = 50 OR id >= 380 THEN double('NaN') WHEN id = 60 THEN double('-0.0')
         WHEN id = 100 THEN 0.0D ELSE double(id) END AS x,
    concat(uuid(), uuid(), uuid(), uuid()) AS pad
"""

#: A subquery that returns the rows in three files of `a`.
SOME = "(SELECT * FROM a WHERE part < 3)"


def write(spark: SparkSession, folder: Path, first: int = 0, end: int = 400) -> None:
    """Writes the rows of a table, 20 per file."""
    rows_of = spark.range(first, end, 1, (end - first) // 20).selectExpr(*select_list(COLUMNS))
    rows_of.write.mode("append").parquet(str(folder))


@contextmanager
def written(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Creates the tables in the folder, and drops them after the block."""
    for name in NAMES:
        write(spark, folder / name)
        build(spark, folder / name, "parquet")
        spark.sql(f"CREATE TABLE {name} USING parquet LOCATION '{folder / name}'")
    yield
    for name in NAMES:
        spark.sql(f"DROP TABLE {name}")


@contextmanager
def without_broadcasts(spark: SparkSession, adaptive: str) -> Iterator[None]:
    """Makes joins shuffle both sides during the block. The keys of small sides are not used."""
    with settings(
        spark,
        spark__sql__adaptive__enabled=adaptive,
        spark__sql__autoBroadcastJoinThreshold="-1",
        spark__sql__optimizer__runtime__bloomFilter__creationSideThreshold="0",
        spark__sql__shuffle__partitions="2",
    ):
        yield
