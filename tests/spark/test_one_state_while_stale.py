"""While scans plan without a listing (spark.sql.zorder.index.maxStaleness) and another engine adds
files, all scans of a table in one query see the same state, even if some of them must list."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.sampled import long
from tests.support.staleness import bound

CREATE = "CREATE TABLE parts (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{}'"

#: Relations that show all 20 rows of the table, and relations that show 10 of them
WHOLE = {
    "name": "parts",
    "path": "parquet.`{t}`",
    "link": "parquet.`{link}`",
    "files": "parquet.`{t}/*/*.parquet`",
    "partitions": "parquet.`{t}/p=*`",
    "files below": "below",
    "files with a pattern": "pattern",
}
PART = {
    "name": "(SELECT * FROM parts WHERE p = 0)",
    "path": "parquet.`{t}/p=0`",
    "another path": "parquet.`{t}/p=1`",
    "link": "parquet.`{link}/p=1`",
    "files": "parquet.`{t}/p=1/*.parquet`",
}


@pytest.fixture
def places(spark: SparkSession, database: str, tmp_path: Path) -> dict[str, Path]:
    """The folder of the table `parts`, which has an index and 10 rows in each of p = 0 and p = 1,
    and a link to it."""
    places = {"t": tmp_path / "t", "link": tmp_path / "link"}
    spark.sql(CREATE.format(places["t"]))
    spark.sql("INSERT INTO parts SELECT id, cast(id % 2 AS INT) FROM range(0, 20, 1, 2)")
    spark.sql("OPTIMIZE parts ZORDER BY (id)")
    places["link"].symlink_to(places["t"])
    return places


def pairs(relations: dict[str, str]) -> list[tuple[str, str]]:
    named = product(relations.values(), relations.values())
    return [(first, second) for first, second in named if first != second]


def add_files(folder: Path) -> None:
    for p in range(2):
        added = pa.table({"id": pa.array(range(100, 105), pa.int64())})
        pq.write_table(added, folder / f"p={p}" / "added.parquet")


@pytest.mark.parametrize("seen", long([False, True], True))
@pytest.mark.parametrize(("first", "second"), [*pairs(WHOLE), *pairs(PART)])
def test_one_state(
    spark: SparkSession, places: dict[str, Path], first: str, second: str, seen: bool
) -> None:
    reader = bound(spark, "1h")
    texts = [text.format(**places) for text in (first, second)]
    for name, options in {
        "below": {"recursiveFileLookup": True},
        "pattern": {"pathGlobFilter": "*.parquet"},
    }.items():
        reader.read.options(**options).parquet(str(places["t"])).createOrReplaceTempView(name)
    if seen:
        for text in texts:
            reader.sql(f"SELECT sum(1) FROM {text} WHERE id >= 0").collect()
    add_files(places["t"])
    counts = ", ".join(f"(SELECT sum(1) FROM {text} WHERE id >= 0)" for text in texts)
    ((one, other),) = reader.sql(f"SELECT {counts}").collect()
    assert one == other
