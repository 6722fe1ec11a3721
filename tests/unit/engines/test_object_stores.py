"""Tables on S3 can be read through the file systems of PyArrow and fsspec. The tests need moto, and
the test with fsspec also needs s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs
import pytest

import pyzorder
from pyzorder.index import ArrowStore, TableFolder
from pyzorder.index.entries import FileEntry
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshot_writer import publish
from tests.support.engine_tables import SETTINGS, statistics_of, write

server = pytest.importorskip("moto.server")

FILES = {f"p={k}/f{k}.parquet": pa.table({"a": [10 * k, 10 * k + 9]}) for k in range(3)}
KEYS = {"access_key": "tests", "secret_key": "tests"}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server that stores the indexed table `tests/t`."""
    running = server.ThreadedMotoServer(port=0)
    running.start()
    host, port = running.get_host_and_port()
    found = f"{host}:{port}"
    system = _s3(found)
    system.create_dir("tests")
    local = tmp_path_factory.mktemp("s3")
    write(local, FILES)
    pyarrow.fs.copy_files(str(local), "tests/t", destination_filesystem=system)
    store, folder = ArrowStore("tests/t", system), TableFolder("tests/t")
    column = IndexedColumn(("a",), "long")
    entries = [
        FileEntry(name, *store.stats([f"tests/t/{name}"])[f"tests/t/{name}"], rows.num_rows, (),
                  SETTINGS, {column: statistics_of(rows, column)})
        for name, rows in FILES.items()
    ]  # fmt: skip
    publish(store, folder, lambda _: [column], entries=entries)
    yield found
    running.stop()


def _s3(endpoint: str) -> pyarrow.fs.S3FileSystem:
    return pyarrow.fs.S3FileSystem(
        endpoint_override=endpoint, scheme="http", allow_bucket_creation=True, region="us-east-1",
        **KEYS,
    )  # fmt: skip


def test_arrow(endpoint: str) -> None:
    system = _s3(endpoint)
    found = pyzorder.files("tests/t", "a = 15", filesystem=system)
    assert found == ["tests/t/p=1/f1.parquet"]
    table = pyzorder.dataset("tests/t", filesystem=system)
    assert len(list(table.get_fragments(pc.field("a") == 15))) == 1
    assert table.to_table(filter=pc.field("p") == 2)["a"].to_pylist() == [20, 29]
    with pytest.raises(pyzorder.ZOrderError, match="ZORDER_PATH_NOT_FOUND"):
        pyzorder.files("tests/none", filesystem=system)


def test_a_uri(endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{endpoint}", "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests", "AWS_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    assert pyzorder.files("s3://tests/t", "a = 15") == ["s3://tests/t/p=1/f1.parquet"]
    assert pyzorder.dataset("s3a://tests/t").to_table().num_rows == 6


def test_fsspec(endpoint: str) -> None:
    s3fs = pytest.importorskip("s3fs")
    system = s3fs.S3FileSystem(endpoint_url=f"http://{endpoint}", key="tests", secret="tests")
    assert pyzorder.files("tests/t", "a = 15", filesystem=system) == ["tests/t/p=1/f1.parquet"]
    assert pyzorder.dataset("tests/t", filesystem=system).to_table().num_rows == 6
