"""OPTIMIZE and file skipping work on Hive tables (STORED AS PARQUET or ORC) in a metastore."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhive import hive

from tests.spark.test_thrift_server import files_selected
from tests.support.processes import hive_session
from tests.support.sampled import long

CASES = [
    (provider, partitioned, converted, "EXTERNAL " if partitioned != converted else "")
    for provider, partitioned, converted in itertools.product(
        ("parquet", "orc"), (False, True), (True, False)
    )
]


@pytest.fixture(scope="module")
def cursor(thrift_server: int) -> Iterator[Any]:
    """A PyHive cursor that has its own session."""
    with hive.connect("127.0.0.1", port=thrift_server, username="me") as connection:
        yield connection.cursor()


def rows(cursor: Any, statement: str) -> list[Any]:
    """The rows that a statement returns, sorted."""
    cursor.execute(statement)
    return sorted(cursor.fetchall())


@pytest.mark.parametrize(
    ("provider", "partitioned", "converted", "external"),
    long(CASES, CASES[0], CASES[5]),
)
def test_optimize(
    cursor: Any, tmp_path: Path, provider: str, partitioned: bool, converted: bool, external: str
) -> None:
    """OPTIMIZE and RESTORE leave the rows unchanged. If `converted` is set, Spark reads the table
    with its own reader. Otherwise, Spark uses Hive's SerDe."""
    columns = "a BIGINT, b STRING, id BIGINT" + ("" if partitioned else ", day INT")
    location = f" LOCATION '{tmp_path}/t'" if external else ""
    keys = " PARTITIONED BY (day INT)" if partitioned else ""
    convert = f"spark.sql.hive.convertMetastore{provider.capitalize()}"
    query = "SELECT * FROM hive_table WHERE a = 7 AND b > 'k3'"
    cursor.execute("SET hive.exec.dynamic.partition.mode=nonstrict")
    cursor.execute("DROP TABLE IF EXISTS hive_table")
    cursor.execute(
        f"CREATE {external}TABLE hive_table ({columns}){keys} STORED AS {provider}{location}"
    )
    cursor.execute(
        "INSERT INTO hive_table SELECT /*+ REPARTITION(8) */ id % 400 a, concat('k', id % 97) b, id, "
        "cast(id % 2 as int) day FROM range(8000)"
    )
    cursor.execute(f"SET {convert}={str(converted).lower()}")
    before = rows(cursor, query), rows(cursor, "SELECT * FROM hive_table")
    ((_, metrics),) = rows(cursor, "OPTIMIZE hive_table ZORDER BY (a, b)")
    assert '"numFilesRemoved":' + ("16" if partitioned else "8") in metrics
    for reader in ("false", "true"):
        cursor.execute(f"SET {convert}={reader}")
        assert (rows(cursor, query), rows(cursor, "SELECT * FROM hive_table")) == before
    plan = "\n".join(str(row[0]) for row in rows(cursor, f"EXPLAIN {query}"))
    selected, total = files_selected(plan)
    assert 1 <= selected <= total // 2
    ((_, metrics),) = rows(cursor, "OPTIMIZE hive_table ZORDER BY (a, b)")
    assert '"numFilesRemoved":0' in metrics
    ((restored, *_),) = rows(cursor, "RESTORE hive_table TO BEFORE OPTIMIZE")
    assert restored == (16 if partitioned else 8)
    assert (rows(cursor, query), rows(cursor, "SELECT * FROM hive_table")) == before


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_that_hive_writes_are_seen_at_once(
    cursor: Any, tmp_path: Path, partitioned: bool
) -> None:
    """Queries immediately see files that Hive has written, even if the settings allow planning
    without a listing. So do queries on cached rows."""
    pq.write_table(pa.table({"id": pa.array([100, 102], pa.int64())}), tmp_path / "new.parquet")
    keys, partition = (" PARTITIONED BY (p INT)", " PARTITION (p = 1)") if partitioned else ("", "")
    cursor.execute("DROP TABLE IF EXISTS loaded")
    cursor.execute(f"CREATE TABLE loaded (id BIGINT){keys} STORED AS PARQUET")
    cursor.execute(f"INSERT INTO loaded{partition} SELECT id FROM range(20)")
    cursor.execute("OPTIMIZE loaded ZORDER BY (id)")
    cursor.execute("SET spark.sql.zorder.index.maxStaleness=1h")
    try:
        cursor.execute("CACHE TABLE cached AS SELECT * FROM loaded")
        assert rows(cursor, "SELECT count(*) FROM loaded") == [(20,)]
        cursor.execute(
            f"LOAD DATA LOCAL INPATH '{tmp_path}/new.parquet' INTO TABLE loaded{partition}"
        )
        assert rows(cursor, "SELECT count(*) FROM loaded") == [(22,)]
        assert rows(cursor, "SELECT id FROM loaded WHERE id > 50") == [(100,), (102,)]
        assert rows(cursor, "SELECT count(*) FROM cached") == [(22,)]
        cursor.execute("REFRESH SKIPPING INDEX ON loaded")
        cursor.execute("SET spark.sql.hive.convertMetastoreParquet=false")
        cursor.execute(f"INSERT INTO loaded{partition} VALUES (104)")
        cursor.execute("RESET spark.sql.hive.convertMetastoreParquet")
        assert rows(cursor, "SELECT count(*) FROM loaded") == [(23,)]
        assert rows(cursor, "SELECT count(*) FROM cached") == [(23,)]
    finally:
        cursor.execute("RESET spark.sql.zorder.index.maxStaleness")
        cursor.execute("DROP VIEW IF EXISTS cached")
        cursor.execute("DROP TABLE loaded")


@pytest.mark.long
@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_a_table_that_is_not_listed(tmp_path: Path, provider: str) -> None:
    """While the index is recent enough, a session does not list a table when it resolves the
    table's name. Spark then reads the table in the same way as after a listing."""
    properties = f"TBLPROPERTIES ('{provider}.compression' = 'gzip', 'other' = 'x')"
    listed = hive_session.told(
        tmp_path, "t",
        f"CREATE TABLE t (id BIGINT, MixedCase INT) STORED AS {provider} {properties}",
        "INSERT INTO t SELECT id, 1 FROM range(0, 100, 1, 4)",
        "CREATE SKIPPING INDEX ON t (id)",
    )  # fmt: skip
    hour = "SET spark.sql.zorder.index.maxStaleness=1h"
    found = hive_session.told(tmp_path, "t", hour)
    assert listed["discovered"] > 0
    assert found["discovered"] == 0
    assert found["relation"] == listed["relation"]
    assert found["ids"] == listed["ids"] == list(range(100))
    plain = hive_session.told(tmp_path, "t", plain=True)
    assert found["relation"] == plain["relation"]
    convert = f"SET spark.sql.hive.convertMetastore{provider.capitalize()}=false"
    assert hive_session.run(tmp_path, "t", hour, convert)[0] == list(range(100))
