"""Fixtures for tests that run statements. The fixtures reset settings, create a database for a
test, and start a Thrift server that all tests share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyhive import hive
from pyspark.sql import SparkSession

from tests.support.processes.servers import free_port, spark_server
from tests.support.sessions import initial_settings, zorder_settings


@pytest.fixture(autouse=True)
def defaults(request: pytest.FixtureRequest) -> Iterator[None]:
    """Resets pyzorder's settings to the session's initial values after each test that uses
    `spark`."""
    yield
    if "spark" not in request.fixturenames:
        return
    spark = request.getfixturevalue("spark")
    initial, now = initial_settings(spark), zorder_settings(spark)
    for name in now.keys() - initial.keys():
        spark.conf.unset(name)
    for name, value in initial.items() - now.items():
        spark.conf.set(name, value)


@pytest.fixture
def database(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """Creates a database in `tmp_path / "db"`. It is the current database during the test."""
    spark.sql(f"CREATE DATABASE test_database LOCATION '{tmp_path / 'db'}'")
    spark.sql("USE test_database")
    yield "test_database"
    spark.sql("USE default")
    spark.sql("DROP DATABASE test_database CASCADE")


@pytest.fixture
def parted(spark: SparkSession) -> Iterator[None]:
    """After the test, drops the table that tests/support/partitioned_table.py creates."""
    yield
    spark.sql("DROP TABLE IF EXISTS parted")


@pytest.fixture
def held(spark: SparkSession, tmp_path: Path) -> Callable[..., object]:
    """Returns a function that runs a query and calls another function while the query is blocked
    in the UDF `slow`."""
    started, go = str(tmp_path / "started"), str(tmp_path / "go")

    def slow(value: int) -> int:
        Path(started).touch()
        end = time.monotonic() + 60
        while not Path(go).exists() and time.monotonic() < end:
            time.sleep(0.02)
        return value

    def run(query: Callable[[], object], meanwhile: Callable[[], object]) -> object:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(query)
            end = time.monotonic() + 60
            while not Path(started).exists() and not running.done():
                assert time.monotonic() < end
                time.sleep(0.02)
            try:
                meanwhile()
            finally:
                Path(go).touch()
            return running.result()

    spark.udf.register("slow", slow, "bigint")
    return run


@pytest.fixture(scope="session")
def thrift_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Thrift server with pyzorder. The server has its own Derby metastore and
    warehouse.

    A client has already connected and disconnected, so Hive has closed the class loader that loaded
    pyzorder's jar.
    """
    port = free_port()
    options = [f"hive.server2.thrift.port={port}", "hive.server2.thrift.bind.host=127.0.0.1"]
    arguments = [word for setting in options for word in ("--hiveconf", setting)]
    main_class = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    with spark_server(tmp_path_factory.mktemp("thrift"), port, main_class, {}, *arguments):
        hive.connect("127.0.0.1", port=port, username="gone").close()
        yield port
