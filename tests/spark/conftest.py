"""What only the tests with servers share: one Thrift server a run, with a Derby metastore."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyhive import hive

from tests.spark.servers import free_port, spark_server


@pytest.fixture(scope="session")
def thrift_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Thrift server with pyzorder, a Derby metastore and a warehouse of its own.

    A client has come and gone: Hive has then closed the class loader that holds pyzorder's jar.
    """
    port = free_port()
    options = [f"hive.server2.thrift.port={port}", "hive.server2.thrift.bind.host=127.0.0.1"]
    arguments = [word for setting in options for word in ("--hiveconf", setting)]
    main_class = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    with spark_server(tmp_path_factory.mktemp("thrift"), port, main_class, {}, *arguments):
        hive.connect("127.0.0.1", port=port, username="gone").close()
        yield port
