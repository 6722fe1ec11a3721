"""If an index contains values that pyzorder would never write, statements succeed or fail with one
of pyzorder's own errors, and no rows are lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import pyzorder
from tests.support.scans import settings

ROWS = 20

COLUMNS = """
    id, string(id) AS s, id / 7D AS x, float(id) AS f, date_add(DATE'2020-01-01', int(id)) AS d,
    timestamp_millis(id) AS ts, CAST(timestamp_millis(id) AS TIMESTAMP_NTZ) AS tn, id % 2 = 0 AS bo,
    decimal(id) / 3 AS de, CAST(id * 1000 AS DECIMAL(38, 5)) AS dw, CAST(string(id) AS BINARY) AS bi,
    named_struct('a', int(id)) AS st, uuid() AS u
"""

CONDITIONS = """
    id = 12; id IN (1, 2, 3) AND s > '1'; NOT (id = 5); id <=> NULL; id + 1 = 5; s >= '95'; s LIKE '1%';
    s IS NULL; s BETWEEN '1' AND '2'; upper(s) = '1'; lower(s) = '12'; x < 3; x = 'NaN'; f > 9; bo;
    d = DATE'2020-01-13'; year(d) = 2020; ts < TIMESTAMP'2020-01-05'; tn < TIMESTAMP_NTZ'2020-01-05';
    date_trunc('MONTH', ts) = TIMESTAMP'1970-01-01'; CAST(ts AS DATE) = DATE'2020-01-02'; de < 1;
    CAST(de AS INT) = 1; dw = 5000; bi = CAST('12' AS BINARY); st.a = 5; u = 'x'
""".replace("\n", "").split(";")  # fmt: skip

#: Aggregates that the index can answer. As texts, because Python has no dates after the year 9999.
AGGREGATES = [
    "count(*), min(id), max(id)",
    "min(s), max(s), min(u), min(bo), max(bo), count(bo)",
    "string(min(d)), string(max(ts)), string(min(tn)), min(bi), max(st.a)",
    "min(de), max(dw), min(x), max(f), count(x), count(lower(s)), max(lower(s))",
]

STATEMENTS = [
    "SELECT * FROM skipping_index('{}')",
    "DESCRIBE SKIPPING INDEX ON '{}'",
    "OPTIMIZE '{}' ZORDER BY (id) DRY RUN",
    "REFRESH SKIPPING INDEX ON '{}'",
    "OPTIMIZE '{}' ZORDER BY (s)",
    "OPTIMIZE '{}' FULL ZORDER BY (id, ts)",
    "OPTIMIZE '{}'",
    "RESTORE '{}' TO BEFORE OPTIMIZE",
    "VACUUM '{}' RETAIN 0 HOURS",
    "DROP SKIPPING INDEX ON '{}'",
]

TEXTS = [
    b"", b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a" * 1023, "\U0010ffff".encode(),
    b"../../x", b"/etc/passwd", b"file:///etc/passwd", b"s3a://b/x", b"C:\\x", b"a:b", b".", b"//",
    b"p=%00/x.parquet", b"p=\xff/x.parquet", b"%zz", b"?a=b", b"x'y`\"\\", b"\n\r\x1b[31m",
    b"zorder_value(id, s)", b"99999999999999999999", b"_sketch-1-6ba7b810-9dad-11d1-80b4-00c04fd430c8",
]  # fmt: skip

LISTS = [[], ["id", "id"], ["nowhere"], ["\0"], ["a"] * 50, ["lower(s)"], ["id, s"], ["`"]]

FLOATS = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-300, 3e38]

#: What replaces fields of the pointer.
FIELDS: dict[str, list[object]] = {
    "coverage": [
        {"listedAt": 2**63 - 1, "whole": True},
        {"listedAt": -(2**63), "whole": False},
        {"listedAt": 10**30, "whole": True},
        {},
        [],
    ],
    "coverableSince": [-1, 2**63 - 1, 10**30, "x", 1.5],
    "sketches": [
        [],
        [{"file": "../x", "length": 10, "directory": 5, "crc32": 1}],
        [{"file": TEXTS[-1].decode(), "length": 2**62, "directory": 0, "crc32": 0}],
    ],
    "sketched": [[], ["nowhere"], "x", [1], ["u", "u"], ["a" * 70_000]],
    "version": [-1, 2**63 - 1, "x", 1.5],
}


def replacements(kind: pa.DataType) -> list[Any]:
    """Values of an Arrow type with a fixed width, at its extremes."""
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_floating(kind):
        return FLOATS
    if pa.types.is_decimal(kind):
        digits = (9,) * kind.precision
        return [Decimal((sign, digits, -kind.scale)) for sign in (0, 1)] + [Decimal(0)]
    ends = 2 ** (kind.bit_width - 1)
    return [0, 1, -1, ends - 1, -ends, ends // 2]


def forged(values: pa.Array, rng: random.Random) -> pa.Array:
    """Replaces some values by others of the same type or, if the column has nulls, by nulls."""
    kind = values.type
    share = rng.choice([0.1, 0.5, 1.0])
    nulls = [None] if rng.random() < 0.2 else []

    def replaced(old: list[Any], new: list[Any]) -> list[Any]:
        return [rng.choice(new + nulls) if rng.random() < share else value for value in old]

    if pa.types.is_list(kind):
        return pa.array(replaced(values.to_pylist(), LISTS), kind)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        old = values.cast(pa.binary()).to_pylist()
        return pa.array(replaced(old, TEXTS), pa.binary()).view(kind)
    if pa.types.is_temporal(kind):
        numbers = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        old = values.cast(numbers).to_pylist()
        return pa.array(replaced(old, replacements(numbers)), numbers).view(kind)
    return pa.array(replaced(values.to_pylist(), replacements(kind)), kind)


def forge(table: Path, rng: random.Random) -> None:
    """Replaces values in some columns of the index, swaps bounds, and changes the pointer."""
    pointer = max((table / "_zorder" / "_index").glob("_v*.json"))
    content = json.loads(pointer.read_text())
    snapshot = pointer.with_name(content["file"])
    rows = pq.ParquetFile(snapshot).read()
    names = rows.column_names
    for name in rng.sample(names, rng.choice([1, 1, 2, 3, 10])):
        values = forged(rows[name].combine_chunks(), rng)
        rows = rows.set_column(names.index(name), name, values)
    if rng.random() < 0.25:
        least = rng.choice([name for name in names if name.endswith("_minValue")])
        i, j = names.index(least), names.index(least.replace("_minValue", "_maxValue"))
        names[i], names[j] = names[j], names[i]
    sink = pa.BufferOutputStream()
    pq.write_table(rows.rename_columns(names), sink, store_schema=False)
    data = sink.getvalue().to_pybytes()
    for file in (snapshot, pointer):
        file.unlink()  # breaks the hard link to the genuine file
    snapshot.write_bytes(data)
    if rng.random() < 0.25:
        field = rng.choice(list(FIELDS))
        content[field] = rng.choice(FIELDS[field])
    content |= {"length": len(data), "crc32": zlib.crc32(data), "numFiles": rows.num_rows}
    pointer.write_text(json.dumps(content))


@pytest.fixture(scope="module")
def genuine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table of one row per file, with statistics of columns of every type, an expression, and
    sketches."""
    table = Path(tmp_path_factory.mktemp("genuine")) / "t"
    spark.range(0, ROWS, 1, 4).selectExpr("*").createOrReplaceTempView("numbers")
    spark.sql(f"SELECT {COLUMNS} FROM numbers").write.parquet(str(table))
    columns = "id, s, x, f, d, ts, tn, de, dw, bi, bo, st.a, u, lower(s)"
    spark.sql(f"CREATE SKIPPING INDEX ON '{table}' ({columns})")
    with settings(spark, spark__sql__zorder__optimize__targetFileSize="1"):
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id, s)")
    for old in (table / "_zorder" / "_retired").rglob("*.retired"):
        old.unlink()
    yield table


def run(action: Callable[[], object]) -> None:
    """Runs an action. It may fail with one of pyzorder's errors."""
    try:
        action()
    except (PySparkException, pyzorder.ZOrderError) as failure:
        assert "ZORDER_" in str(failure), str(failure)


@pytest.mark.parametrize("seed", range(100))
def test_forged_values(spark: SparkSession, genuine: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    table = tmp_path / "t"
    shutil.copytree(genuine, table, copy_function=lambda a, b: os.link(a, b))
    forge(table, rng)
    source = f"parquet.`{table}`"
    key = rng.choice(["id", "s", "x", "d", "ts", "de", "dw"])
    changes = rng.sample(STATEMENTS[3:], 3)
    with settings(
        spark,
        spark__sql__zorder__index__driverLimit=rng.choice(["512m", "1"]),
        spark__sql__zorder__index__maxStaleness=rng.choice(["0s", "1h"]),
        spark__sql__zorder__vacuum__retentionCheck="false",
        spark__sql__zorder__optimize__targetFileSize=rng.choice(["4k", "16k", "256m"]),
    ):
        for condition in rng.sample(CONDITIONS, 5):
            run(spark.sql(f"SELECT id, s FROM {source} WHERE {condition}").collect)
            run(lambda where=condition: pyzorder.files(str(table), where))  # type: ignore[misc]
        for aggregates in AGGREGATES:
            run(spark.sql(f"SELECT {aggregates} FROM {source}").collect)
        run(spark.sql(f"SELECT id FROM {source} ORDER BY {key} LIMIT 3").collect)
        joined = f"SELECT a.id FROM {source} a JOIN {source} b ON a.{key} = b.{key} WHERE b.id < 5"
        run(spark.sql(joined).collect)
        run(lambda: pyzorder.explain(spark.sql(joined)))
        run(lambda: pyzorder.dataset(str(table)).count_rows())
        for statement in [*STATEMENTS[:3], *changes]:
            run(lambda text=statement: spark.sql(text.format(table)).collect())  # type: ignore[misc]
    with settings(spark, spark__sql__zorder__skipping__enabled="false"):
        ids = spark.read.schema("id BIGINT").parquet(str(table)).collect()
        assert sorted(row["id"] for row in ids) == list(range(ROWS)), changes
