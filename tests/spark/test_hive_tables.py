"""Hive's own tables, STORED AS PARQUET and ORC, in a real metastore: OPTIMIZE and pruned SELECTs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive

from tests.spark.test_thrift_server import files_selected

CASES = [
    (provider, partitioned, converted, "EXTERNAL " if partitioned != converted else "")
    for provider, partitioned, converted in itertools.product(
        ("parquet", "orc"), (False, True), (True, False)
    )
]
Run = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def run(thrift_server: int) -> Iterator[Run]:
    """Runs one statement in a session of its own, and gives its rows."""
    with hive.connect("127.0.0.1", port=thrift_server, username="me") as connection:
        cursor = connection.cursor()

        def rows(statement: str) -> list[Any]:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

        yield rows


@pytest.mark.parametrize(("provider", "partitioned", "converted", "external"), CASES)
def test_optimize(
    run: Run, tmp_path: Path, provider: str, partitioned: bool, converted: bool, external: str
) -> None:
    """`converted`: whether Spark reads the table with its own reader, or with Hive's SerDe."""
    columns = "a BIGINT, b STRING, id BIGINT" + ("" if partitioned else ", day INT")
    location = f" LOCATION '{tmp_path}/t'" if external else ""
    keys = " PARTITIONED BY (day INT)" if partitioned else ""
    run("DROP TABLE IF EXISTS hive_table")
    run(f"CREATE {external}TABLE hive_table ({columns}){keys} STORED AS {provider}{location}")
    run("SET hive.exec.dynamic.partition.mode=nonstrict")
    run(
        "INSERT INTO hive_table SELECT /*+ REPARTITION(8) */ id % 400 a, concat('k', id % 97) b, id, "
        "cast(id % 2 as int) day FROM range(8000)"
    )
    query = "SELECT * FROM hive_table WHERE a = 7 AND b > 'k3'"
    by_engine = {}
    try:
        run(f"SET spark.sql.hive.convertMetastore{provider.capitalize()}={str(converted).lower()}")
        before, all_before = sorted(run(query)), sorted(run("SELECT * FROM hive_table"))
        (row,) = run("OPTIMIZE hive_table ZORDER BY (a, b)")
        assert '"numFilesRemoved":' + ("16" if partitioned else "8") in row[1]
        for reader in ("true", "false"):
            run(f"SET spark.sql.hive.convertMetastore{provider.capitalize()}={reader}")
            by_engine[reader] = sorted(run(query)), sorted(run("SELECT * FROM hive_table"))
        assert by_engine == dict.fromkeys(("true", "false"), (before, all_before))
        run(f"SET spark.sql.hive.convertMetastore{provider.capitalize()}=true")
        plan = "\n".join(str(row[0]) for row in run(f"EXPLAIN {query}"))
        selected, total = files_selected(plan)
        assert 1 <= selected <= total // 2
        (again,) = run("OPTIMIZE hive_table ZORDER BY (a, b)")
        assert '"numFilesRemoved":0' in again[1]
    finally:
        run(f"RESET spark.sql.hive.convertMetastore{provider.capitalize()}")
        run("DROP TABLE hive_table")
