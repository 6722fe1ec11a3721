"""Commands send no requests to a store that a forged record names."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_planted_links import COMMITTED, DEAD, OWN, put, write_rows
from tests.support import scans
from tests.support.tables import ids


class Listener:
    """A server that counts the connections to it, and closes each of them."""

    def __init__(self) -> None:
        self.connections = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()

    def close(self) -> None:
        self._server.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    yield server
    server.close()


@pytest.fixture
def table(spark: SparkSession, database: str, tmp_path: Path) -> Iterator[Path]:
    """The folder of the optimized table `t`."""
    write_rows(spark, OWN, tmp_path / "t")
    spark.sql(f"CREATE TABLE t (id BIGINT, other BIGINT) USING parquet LOCATION '{tmp_path / 't'}'")
    spark.sql("OPTIMIZE t ZORDER BY (id)")
    with scans.settings(spark, spark__sql__zorder__vacuum__retentionCheck="false"):
        yield tmp_path / "t"


#: Names of folders that a record could contain. {} stands for the port of the listener.
STORES = [
    "webhdfs://127.0.0.1:{}/x",
    "hdfs://127.0.0.1:{}/x",
    "swebhdfs://127.0.0.1:{}/x",
    "http://127.0.0.1:{}/x",
    "hdfs:/x",
    "viewfs:/x",
    "nothing:/x",
]

WRITERS = [
    "OPTIMIZE t FULL ZORDER BY (other)",
    "VACUUM t RETAIN 0 HOURS",
    "RESTORE t TO BEFORE OPTIMIZE",
]
READERS = ["SELECT count(*) FROM t", "DESCRIBE SKIPPING INDEX ON t", "REFRESH SKIPPING INDEX ON t"]

RECORDS = ["folders", "retire", "add"]


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("field", RECORDS)
@pytest.mark.parametrize("store", STORES)
def test_stores(
    spark: SparkSession, table: Path, listener: Listener, store: str, field: str, committed: bool
) -> None:
    """Writers refuse to finish a run that names files on another store, and say how to end it."""
    named = store.format(listener.port)
    file = {"path": f"{named}/part-0.parquet", "size": 1, "modificationTime": 1}
    record: dict[str, Any] = {"retire": [], "add": [], "folders": []}
    record[field] = [named] if field == "folders" else [file]
    outcome = {"outcome": COMMITTED} if committed else {}
    journal = table / "_zorder" / "_journal"
    put(journal, 2, prepare=DEAD, retire=record, **outcome)
    for statement in READERS:
        spark.sql(statement).collect()
    for statement in WRITERS:
        with pytest.raises(PySparkException, match="ZORDER_UNFINISHED_ELSEWHERE") as refused:
            spark.sql(statement)
        assert f"delete {journal / '_2.retire'}" in str(refused.value).replace("file:", "")
    assert listener.connections == 0
    (journal / "_2.retire").unlink()
    spark.sql(WRITERS[0])
    assert ids(spark.table("t")) == OWN
