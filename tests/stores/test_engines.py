"""Engines other than Spark can read a table on any store, using the index that Spark has
written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc
import pyarrow.fs
import pytest

import pyzorder
from tests.stores.tables import ALL, Table
from tests.support.folders import Folder

pytestmark = pytest.mark.stores


def of_s3(setting: Callable[[str], str]) -> Any:
    """PyArrow's file system for the server that tests/stores/s3.py starts."""
    scheme, _, endpoint = setting("s3a.endpoint").partition("://")
    return pyarrow.fs.S3FileSystem(
        scheme=scheme,
        endpoint_override=endpoint,
        access_key=setting("s3a.access.key"),
        secret_key=setting("s3a.secret.key"),
        region=setting("s3a.endpoint.region"),
    )


def of_hdfs(setting: Callable[[str], str]) -> Any:
    """WebHDFS through fsspec, because PyArrow's own HDFS client needs Hadoop's native library."""
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("requests")
    host, port = setting("dfs.namenode.http-address").split(":")
    return fsspec.filesystem("webhdfs", host=host, port=int(port), user=os.environ.get("USER"))


SYSTEMS = {"s3a": of_s3, "hdfs": of_hdfs, "file": lambda setting: pyarrow.fs.LocalFileSystem()}


def setting(name: str) -> str:
    given = json.loads(os.environ.get("PYZORDER_TEST_SETTINGS", "{}"))
    return str(given.get(f"spark.hadoop.fs.{name}") or given[f"spark.hadoop.{name}"])


@pytest.mark.parametrize("partitioned", [False, True])
def test_files_and_datasets(folder: Folder, partitioned: bool) -> None:
    system = SYSTEMS[folder.scheme](setting)
    table = Table(folder, partitioned=partitioned)
    table.run("CREATE SKIPPING INDEX ON {}")
    table.optimize()
    table.append(40, 44)
    url = urlsplit(folder.url)
    path = (url.netloc if folder.scheme == "s3a" else "") + re.sub("^/+", "/", url.path)

    def ids(where: Any) -> list[int]:
        found = pyzorder.dataset(path, filesystem=system).to_table(filter=where)
        return sorted(found["id"].to_pylist())

    assert len(pyzorder.files(path, filesystem=system)) == len(folder.data())
    assert ids(None) == list(range(44))
    assert ids(pc.field("id") == 7) == [7] and ids(pc.field("id") >= 39) == list(range(39, 44))
    alone = pyzorder.files(path, "id = 7 AND day = 1", filesystem=system)
    assert len(alone) == 1

    for name in set(folder.data()) - {alone[0].rpartition(path + "/")[2]}:
        folder.remove(name)
    assert ids(pc.field("id") == 7) == [7] and set(ids(None)) < set(ALL)
