"""A BI tool's way in: Spark's Thrift server with the extension, asked by beeline and by PyHive."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.servers import BIN, free_port, spark_server

FILES = 16
SELECTED = re.compile(r"(\d+) of (\d+) files selected")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Thrift server with pyzorder, a Derby metastore and a warehouse of its own."""
    port = free_port()
    hive = [f"hive.server2.thrift.port={port}", "hive.server2.thrift.bind.host=127.0.0.1"]
    arguments = [word for setting in hive for word in ("--hiveconf", setting)]
    main_class = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    with spark_server(tmp_path_factory.mktemp("thrift"), port, main_class, {}, *arguments):
        yield port


def beeline(port: int, *statements: str) -> str:
    """What beeline prints for some statements, in one session."""
    command = [str(BIN / "beeline"), "-u", f"jdbc:hive2://127.0.0.1:{port}/default", "-n", "me"]
    command += ["--outputformat=tsv2", "--silent=true"]
    for statement in statements:
        command += ["-e", statement]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def create(name: str) -> str:
    """A table of 16 files, in each of which both columns have all their values."""
    return (
        f"CREATE TABLE {name} USING parquet AS SELECT /*+ REPARTITION({FILES}) */ id % 400 AS a, "
        "id div 400 * 7 % 50 AS b, id FROM range(20000)"
    )


def files_selected(plan: str) -> tuple[int, int]:
    """Selected and all files, as EXPLAIN shows them."""
    found = SELECTED.search(plan)
    assert found is not None, plan
    return int(found.group(1)), int(found.group(2))


def test_beeline(server: int) -> None:
    query = "SELECT count(*) FROM from_beeline WHERE a = 7 AND b < 40"
    before = beeline(server, create("from_beeline"), query).split()[-1]
    said = beeline(server, "OPTIMIZE from_beeline ZORDER BY (a, b)")
    assert "numFilesAdded" in said or "numfilesadded" in said.lower(), said
    assert beeline(server, query).split()[-1] == before
    selected, total = files_selected(beeline(server, f"EXPLAIN {query}"))
    assert 1 <= selected <= total // 2


def test_pyhive(server: int) -> None:
    hive = pytest.importorskip("pyhive.hive")
    with hive.connect("127.0.0.1", port=server, username="me") as connection:
        cursor = connection.cursor()

        def rows(statement: str) -> list[Any]:
            cursor.execute(statement)
            found: list[Any] = cursor.fetchall()
            return found

        cursor.execute(create("from_pyhive"))
        query = "SELECT id, a, b FROM from_pyhive WHERE a = 123"
        before = sorted(rows(query))
        assert len(before) == 50
        rows("OPTIMIZE from_pyhive ZORDER BY (a, b)")
        assert sorted(rows(query)) == before
        plan = "\n".join(str(row[0]) for row in rows(f"EXPLAIN {query}"))
        selected, total = files_selected(plan)
        assert 1 <= selected <= total // 2
