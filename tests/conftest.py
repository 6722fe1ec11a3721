"""Provides the Spark session that all tests share, and prints how many processes the tests have
killed."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from pyzorder import bridge
from tests.support import sampled, sessions
from tests.support.processes import kill_matrix

os.environ.setdefault("SPARK_SUBMIT_OPTS", sessions.SUBMIT_OPTIONS)
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for UDFs in Spark's workers


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The local Spark session with pyzorder, shared by all tests. A test must unset every setting
    that it changes."""
    home = tmp_path_factory.mktemp("spark")
    settings = {"spark.sql.warehouse.dir": str(home / "warehouse")}
    for mode in ("datetimeRebaseModeInRead", "datetimeRebaseModeInWrite",
                 "int96RebaseModeInRead", "int96RebaseModeInWrite"):  # fmt: skip
        # These are the defaults of Spark 4. With its own defaults, Spark 3.5 rejects dates before
        # 1582.
        settings[f"spark.sql.parquet.{mode}"] = "CORRECTED"
    session = sessions.session(threads=2, memory="1536m", **settings)
    if not bridge.is_connect(session):
        session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module", autouse=True)
def no_views_left() -> Iterator[None]:
    """Drops the temporary views that a module has created, because they would hide tables of other
    modules."""
    yield
    session = SparkSession.getActiveSession()
    if session is not None:
        for view in session.sql("SHOW VIEWS IN spark_catalog.default").collect():
            if view.isTemporary:
                session.catalog.dropTempView(view.viewName)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves some variants of tests to `make test-long`."""
    sampled.sample(items, set(re.findall(r"not (\w+)", " ".join(config.getini("addopts")))))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a pytest-xdist worker (`-n`), sends the kill counts to the main process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["kills"] = list(kill_matrix.cells.items())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds the kill counts of a worker that has finished."""
    told = getattr(node, "workeroutput", {}).get("kills", [])
    kill_matrix.cells.update({tuple(cell): count for cell, count in told})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how many processes were killed at each step, and how many reads after the kills were
    correct."""
    if kill_matrix.kills():
        terminalreporter.section(f"{kill_matrix.kills()} processes killed by SIGKILL")
        printed = Console(file=io.StringIO(), width=100)
        printed.print(kill_matrix.table())
        terminalreporter.write_line(printed.file.getvalue())
