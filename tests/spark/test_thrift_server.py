"""Statements and queries work through Spark's Thrift server. The tests use beeline and PyHive as
clients."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from pyhive import hive

from tests.support.processes.servers import BIN

FILES = 16
SELECTED = re.compile(r"(\d+) of (\d+) files selected")


def beeline(port: int, *statements: str) -> str:
    """Runs the statements in a single beeline session, and returns the output."""
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
    """A statement that creates a table whose rows are distributed evenly over 16 files."""
    return (
        f"CREATE TABLE {name} USING parquet AS SELECT /*+ REPARTITION({FILES}) */ id % 400 AS a, "
        "id div 400 * 7 % 50 AS b, id FROM range(20000)"
    )


def files_selected(plan: str) -> tuple[int, int]:
    """The number of selected files and the number of all files, as EXPLAIN shows them."""
    found = SELECTED.search(plan)
    assert found is not None, plan
    return int(found.group(1)), int(found.group(2))


def test_beeline(thrift_server: int) -> None:
    query = "SELECT count(*) FROM from_beeline WHERE a = 7 AND b < 40"
    before = beeline(thrift_server, create("from_beeline"), query).split()[-1]
    said = beeline(thrift_server, "OPTIMIZE from_beeline ZORDER BY (a, b)")
    assert "numFilesAdded" in said or "numfilesadded" in said.lower(), said
    assert beeline(thrift_server, query).split()[-1] == before
    selected, total = files_selected(beeline(thrift_server, f"EXPLAIN {query}"))
    assert 1 <= selected <= total // 2


def test_pyhive(thrift_server: int) -> None:
    with hive.connect("127.0.0.1", port=thrift_server, username="me") as connection:
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
