"""Queries that read parts of a table by their paths see one state of the table, and see its rows
after an OPTIMIZE, even if they plan without a listing (spark.sql.zorder.index.maxStaleness)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.support.sampled import long
from tests.support.staleness import bound

CREATE = "CREATE TABLE parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{}'"


@pytest.fixture
def table(spark: SparkSession, database: str, tmp_path: Path) -> Path:
    """The folder of the table `parts`, which has an index and 10 rows in each of p = 0 and p = 1.
    There is a link to the folder beside it."""
    folder = tmp_path / "t"
    spark.sql(CREATE.format(folder))
    spark.sql("INSERT INTO parts SELECT id, cast(id % 2 AS INT) FROM range(0, 20, 1, 2)")
    spark.sql("OPTIMIZE parts ZORDER BY (id)")
    (tmp_path / "link").symlink_to(folder)
    return folder


def a_file(folder: Path) -> Path:
    return min(folder.glob("*.parquet"))


PATHS: dict[str, Callable[[Path], tuple[str, int]]] = {
    "a file": lambda t: (str(a_file(t / "p=0")), 10),
    "files": lambda t: (f"{t}/p=0/*.parquet", 10),
    "files of all partitions": lambda t: (f"{t}/*/*.parquet", 20),
    "partitions": lambda t: (f"{t}/p=*", 20),
    "a partition": lambda t: (f"{t}/p=1", 10),
}


@pytest.mark.parametrize("staleness", ["0s", "1h"])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("used", long([True, False], True))
def test_rows_after_an_optimize(
    spark: SparkSession, table: Path, path: str, staleness: str, used: bool
) -> None:
    """A DataFrame over some files still has their rows after another session's OPTIMIZE."""
    place, rows = PATHS[path](table)
    reader = bound(spark.newSession(), staleness)
    frame = reader.read.parquet(place)
    frame.createOrReplaceTempView("some")
    if used:
        assert len(frame.where("id >= 0").collect()) == rows
    spark.sql("OPTIMIZE parts FULL ZORDER BY (id)")
    assert len(frame.where("id >= 0").collect()) == rows
    assert reader.sql("SELECT sum(1) FROM some").collect() == [(rows,)]
    assert frame.count() == rows


NAMED = "(SELECT * FROM parts WHERE p = 0)"

#: Two ways to read 10 rows each of one table. The first one is read by one task, so the statements
#: that run meanwhile have a core left.
PAIRS: dict[str, Callable[[Path], tuple[str, str]]] = {
    "partitions by path": lambda t: (f"parquet.`{t}/p=0`", f"parquet.`{t}/p=1`"),
    "a name and a path": lambda t: (NAMED, f"parquet.`{t}/p=1`"),
    "a path and a name": lambda t: (f"parquet.`{t}/p=1`", NAMED),
    "a name and a link": lambda t: (
        NAMED,
        f"(SELECT * FROM parquet.`{t.parent}/link` WHERE p = 0)",
    ),
    "a link and a name": lambda t: (
        f"(SELECT * FROM parquet.`{t.parent}/link` WHERE p = 0)",
        NAMED,
    ),
    "a partition behind a link": lambda t: (
        f"parquet.`{t}/p=0`",
        f"parquet.`{t.parent}/link/p=1`",
    ),
    "two files": lambda t: (
        f"parquet.`{a_file(t / 'p=0')}`",
        f"parquet.`{a_file(t / 'p=1')}`",
    ),
}

CHANGES = {
    "OPTIMIZE": "INSERT INTO test_database.parts SELECT id, id % 2 FROM range(20, 30); OPTIMIZE test_database.parts FULL ZORDER BY (id)",
    "OVERWRITE": "INSERT OVERWRITE test_database.parts SELECT id, id % 2 FROM range(7)",
    "INSERT": "INSERT INTO test_database.parts SELECT id, id % 2 FROM range(20, 30)",
}


@pytest.mark.parametrize("staleness", long(["0s", "1h"], "1h"))
@pytest.mark.parametrize("change", long(CHANGES, "OPTIMIZE", "OVERWRITE"))
@pytest.mark.parametrize("pair", PAIRS)
def test_one_state(
    spark: SparkSession,
    table: Path,
    held: Callable[..., list[tuple[int, int]]],
    pair: str,
    change: str,
    staleness: str,
) -> None:
    """Both scans of a query see the same state, or the query fails because files are gone."""
    first, second = PAIRS[pair](table)
    reader = bound(spark, staleness)

    def meanwhile() -> None:
        for statement in CHANGES[change].split("; "):
            spark.newSession().sql(statement).collect()

    frame = reader.sql(
        f"SELECT max(c), count(*) FROM {second} JOIN (SELECT count(slow(id)) AS c FROM {first})"
        " ON id < c + 1000"
    )
    try:
        ((one, other),) = held(frame.collect, meanwhile)
    except Py4JJavaError as failure:
        assert change == "OVERWRITE" and "FILE_NOT_EXIST" in str(failure)
    else:
        assert one == other
