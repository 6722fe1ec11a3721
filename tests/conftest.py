"""Fixtures that every Spark test shares: one session a run, a fresh folder and database a test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import pyzorder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark with pyzorder in it, shared by all tests: unset what you set in it."""
    home = tmp_path_factory.mktemp("spark")
    builder = (
        SparkSession.builder.master("local[2]")
        .appName("pyzorder-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        # Many short queries: to compile them well takes longer than to run them.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
    )
    for mode in ("datetimeRebaseModeInRead", "datetimeRebaseModeInWrite",
                 "int96RebaseModeInRead", "int96RebaseModeInWrite"):  # fmt: skip
        # Spark 4's defaults; Spark 3.5 refuses dates before 1582 unless it is told their calendar.
        builder = builder.config(f"spark.sql.parquet.{mode}", "CORRECTED")
    session = pyzorder.configure(builder).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
