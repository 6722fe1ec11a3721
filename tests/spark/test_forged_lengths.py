"""An index that states lengths it cannot have is not used, and costs the driver no memory."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.scans import opened

#: A length in bytes that is far greater than the snapshot.
LENGTH = 600 << 20


def chunk_length(jvm: Any, body: bytearray, column: Any) -> None:
    column.setTotal_compressed_size(LENGTH)


def page_length(jvm: Any, body: bytearray, column: Any) -> None:
    start = column.getDictionary_page_offset() or column.getData_page_offset()
    stream = jvm.java.io.ByteArrayInputStream(bytes(body[start:]))
    header = jvm.org.apache.parquet.format.Util.readPageHeader(stream)
    page = bytes(stream.readAllBytes())[: header.getCompressed_page_size()]
    header.setCompressed_page_size(LENGTH)
    moved(jvm, body, column, header, page)


def dictionary_values(jvm: Any, body: bytearray, column: Any) -> None:
    start = column.getDictionary_page_offset()
    stream = jvm.java.io.ByteArrayInputStream(bytes(body[start:]))
    header = jvm.org.apache.parquet.format.Util.readPageHeader(stream)
    header.getDictionary_page_header().setNum_values(LENGTH // 8)
    rest = column.getTotal_compressed_size() - (len(body) - start - stream.available())
    moved(jvm, body, column, header, bytes(stream.readAllBytes())[:rest])


def moved(jvm: Any, body: bytearray, column: Any, header: Any, rest: bytes) -> None:
    """Moves a column chunk with a changed page header to the end of the file."""
    out = jvm.java.io.ByteArrayOutputStream()
    jvm.org.apache.parquet.format.Util.writePageHeader(header, out)
    text = bytes(out.toByteArray())
    place, first = len(body), column.getDictionary_page_offset() or column.getData_page_offset()
    shift = place + len(text) - (first + column.getTotal_compressed_size() - len(rest))
    column.setData_page_offset(column.getData_page_offset() + shift)
    if column.isSetDictionary_page_offset():
        column.setDictionary_page_offset(place)
    else:
        column.setData_page_offset(place)
    column.setTotal_compressed_size(len(text) + len(rest))
    body += text + rest


def forge(jvm: Any, folder: Path, name: str, change: Any) -> None:
    """Publishes a copy of the snapshot in which a column chunk is changed."""
    pointer = max((folder / "_zorder" / "_index").glob("_v*.json"))
    fields = json.loads(pointer.read_text())
    data = pointer.with_name(fields["file"]).read_bytes()
    (length,) = struct.unpack("<I", data[-8:-4])
    util = jvm.org.apache.parquet.format.Util
    footer = util.readFileMetaData(jvm.java.io.ByteArrayInputStream(data[-8 - length : -8]))
    body = bytearray(data[: -8 - length])
    for column in footer.getRow_groups().get(0).getColumns():
        if ".".join(column.getMeta_data().getPath_in_schema()) == name:
            change(jvm, body, column.getMeta_data())
    out = jvm.java.io.ByteArrayOutputStream()
    util.writeFileMetaData(footer, out)
    text = bytes(out.toByteArray())
    data = bytes(body) + text + struct.pack("<I", len(text)) + b"PAR1"
    version = fields["version"] + 1
    fields |= {"version": version, "length": len(data), "crc32": zlib.crc32(data)}
    fields["file"] = f"_snapshot-{version}-forged"
    pointer.with_name(fields["file"]).write_bytes(data)
    pointer.with_name(f"_v{version:020}.json").write_text(json.dumps(fields))


def heap_peak(jvm: Any) -> int:
    """The sum of the peaks of the heap's pools in bytes since the last `reset`."""
    pools = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    heap = jvm.java.lang.management.MemoryType.HEAP
    return sum(pool.getPeakUsage().getUsed() for pool in pools if pool.getType() == heap)


def reset(jvm: Any) -> None:
    jvm.System.gc()
    for pool in jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans():
        pool.resetPeakUsage()


@pytest.mark.parametrize(
    ("name", "change"),
    [("path", chunk_length), ("size", chunk_length), ("path", page_length),
     ("id_minValue", page_length), ("read_settings", dictionary_values)],
)  # fmt: skip
def test_forged_lengths(spark: SparkSession, tmp_path: Path, name: str, change: Any) -> None:
    jvm = spark._jvm
    folder = tmp_path / "t"
    spark.range(0, 100, 1, 4).write.parquet(str(folder))
    spark.sql(f"CREATE SKIPPING INDEX ON '{folder}'")
    forge(jvm, folder, name, lambda *_: None)
    query = f"SELECT count(*), sum(id) FROM parquet.`{folder}` WHERE id = 77"
    assert spark.sql(query).collect() == [(1, 77)]
    assert len(opened(spark.sql(query))) == 1  # an unchanged copy is used
    forge(jvm, folder, name, change)
    reset(jvm)
    before = heap_peak(jvm)
    assert spark.sql(query).collect() == [(1, 77)]
    assert heap_peak(jvm) - before < LENGTH // 2
    assert len(opened(spark.sql(query))) == 4  # a forged one is not
