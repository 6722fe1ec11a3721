"""The encoders in Spark and NumPy produce the same bytes for the test vectors and for random
values.

In Spark, each test runs twice: interpreted and with generated code. Spark reads the values from a
Parquet file, because some of them cannot be written as SQL literals.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from pyzorder import boundaries, interleave, ordered_bytes
from tests.support import scans
from tests.support.values import BY_TYPE, arrow, sql_type
from tests.vectors import oracle


def has_time(spark: SparkSession) -> bool:
    """Whether this Spark version has the type TIME."""
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 1)


def frame(spark: SparkSession, folder: Path, columns: dict[str, tuple[list, str]]) -> DataFrame:
    """Creates a DataFrame from {name: (values, type)}, with the row number in column `row`."""
    table = {name: arrow(values, data_type) for name, (values, data_type) in columns.items()}
    rows = len(next(iter(table.values())))
    pq.write_table(pa.table({"row": pa.array(range(rows), pa.int32()), **table}), folder / "v")
    schema = ", ".join(["row int", *(f"`{n}` {sql_type(t)}" for n, (_, t) in columns.items())])
    return (
        spark.read.schema(schema)
        .option("datetimeRebaseMode", "CORRECTED")
        .parquet(str(folder / "v"))
    )


@pytest.fixture(params=["CODEGEN_ONLY", "NO_CODEGEN"])
def mode(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test twice: with code generation and in interpreted mode."""
    changed = {
        "spark__sql__codegen__factoryMode": request.param,
        "spark__sql__codegen__wholeStage": str(request.param == "CODEGEN_ONLY").lower(),
    }
    if has_time(spark):
        changed["spark__sql__timeType__enabled"] = "true"
    with scans.settings(spark, **changed):
        yield request.param


def selected(data: DataFrame, *expressions: str) -> list[Any]:
    """Evaluates the expressions on each row and returns the results ordered by column `row`."""
    return [list(r)[1:] for r in sorted(data.selectExpr("row", *expressions).collect())]


def plain(value: Any) -> str:
    """Bytes as hexadecimal digits."""
    return bytes(value).hex()


def test_ordered_bytes_vectors(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    vectors = oracle.read("ordered_bytes")
    for i, data_type in enumerate(sorted({v["type"] for v in vectors})):
        if data_type == "time" and not has_time(spark):
            continue
        mine = [v for v in vectors if v["type"] == data_type]
        values = [oracle.parse(v["value"], data_type) for v in mine]
        folder = tmp_path / str(i)
        folder.mkdir()
        rows = selected(frame(spark, folder, {"c": (values, data_type)}), "zorder_value(c)")
        for vector, row in zip(mine, rows, strict=True):
            assert plain(row[0]) == vector["bits"], vector


def test_interleave_bits_vectors(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    vectors = [v for v in oracle.read("interleave_bits") if len(v["columns"]) <= 20]
    widest = max(len(v["columns"]) for v in vectors)
    columns = {
        f"c{i}": ([bytes.fromhex(v["columns"][i]) if i < len(v["columns"]) and v["columns"][i]
                   is not None else None for v in vectors], "binary")
        for i in range(widest)
    }  # fmt: skip
    data = frame(spark, tmp_path, columns)
    for n in sorted({len(v["columns"]) for v in vectors}):
        rows = selected(data, f"interleave_bits({', '.join(f'c{i}' for i in range(n))})")
        for vector, row in zip(vectors, rows, strict=True):
            if len(vector["columns"]) == n:
                assert plain(row[0]) == vector["z"], vector["why"]


def test_interleave_bits_of_integers(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    data = frame(spark, tmp_path, {"i": ([-1, 1, None], "int"), "l": ([1, None, -2], "bigint")})
    expected = [
        oracle.to_hex(oracle.interleave([i, m]))
        for i, m in [("1" * 32, format(1, "064b")), (format(1, "032b"), "0" * 64),
                     ("0" * 32, "1" * 63 + "0")]
    ]  # fmt: skip
    assert [plain(r[0]) for r in selected(data, "interleave_bits(i, l)")] == expected


def test_z_values_stop_at_1024_bytes(spark: SparkSession, mode: str) -> None:
    data = spark.range(1).selectExpr("cast(id as int) as row", "id")
    for n in (9, 128, 129, 200):
        expected = interleave.interleave_bytes([ordered_bytes.of([0], "bigint")] * n)[0]
        row = selected(data, f"zorder_value({', '.join(['id'] * n)})")[0]
        assert plain(row[0]) == expected.tobytes().hex()
        assert len(row[0]) == min(8 * n, 1024)


def test_range_id_vectors(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    for i, vector in enumerate(oracle.read("range_id")):
        data_type = vector["type"]
        value = oracle.parse(vector["value"], data_type)
        bounds = [oracle.parse(b, data_type) for b in vector["boundaries"]]
        folder = tmp_path / str(i)
        folder.mkdir()
        columns = {f"b{k}": ([b], data_type) for k, b in enumerate(bounds)}
        data = frame(spark, folder, {"c": ([value], data_type), **columns})
        empty = f"cast(array() as array<{data_type}>)"
        array = f"array({', '.join(columns)})" if columns else empty
        assert selected(data, f"range_id(c, {array})") == [[vector["range_id"]]], vector


def test_range_id_of_constants(spark: SparkSession, mode: str, tmp_path: Path) -> None:
    data = frame(spark, tmp_path, {"c": ([None, -5, 1, 2, 9], "int")})
    assert selected(data, "range_id(c, array(5, 1, 3, 1, null))") == [[0], [1], [2], [2], [4]]
    assert selected(data, "range_id(c, array(1.5D, 9))") == [[0], [1], [1], [2], [3]]
    assert selected(data, "range_id(cast(c as string), array('1', '2'))") == [
        [0], [1], [2], [3], [3]]  # fmt: skip
    assert selected(data, "range_id(c, cast(null as array<int>))") == [[None]] * 5


def test_long_z_value_vectors(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    to_seq = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    integer = jvm.org.apache.spark.sql.types.DataType.fromDDL("int")
    for vector in oracle.read("z_value_long"):
        ids = to_seq([expressions.Literal(i, integer) for i in vector["ids"]])
        z_value = jvm.io.pyzorder.expressions.ZValueLong(ids, to_seq(vector["counts"]))
        assert z_value.eval(None) == vector["z"], vector["why"]


def test_batches_of_draws(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    """The encoders agree on a batch of random values of all types. If a value fails, add it to the
    test vectors."""
    types = [t for t in BY_TYPE if t != "time" or has_time(spark)]
    size = 60

    @settings(
        max_examples=1,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        drawn = {
            t: data.draw(st.lists(st.none() | BY_TYPE[t], min_size=size, max_size=size))
            for t in types
        }
        names = {t: f"c{i}" for i, t in enumerate(types)}
        rows_in = frame(spark, tmp_path, {names[t]: (drawn[t], t) for t in types})
        few = rows_in.where("row < 20").agg(
            *(F.collect_list(n).alias(f"of_{n}") for n in names.values())
        )
        rows = selected(
            rows_in.crossJoin(few),
            *(f"zorder_value({n})" for n in names.values()),
            f"zorder_value({', '.join(names.values())})",
            f"interleave_bits({names['int']}, {names['binary']}, {names['smallint']})",
            *(f"range_id({n}, of_{n})" for n in names.values()),
        )
        bits = [ordered_bytes.of(drawn[t], t) for t in types]
        for i, t in enumerate(types):
            assert [plain(r[i]) for r in rows] == [format(int(b), "016x") for b in bits[i]], t
        z_values = interleave.interleave_bytes(bits)
        assert [plain(r[len(types)]) for r in rows] == [z.tobytes().hex() for z in z_values]
        mixed = interleave.interleave_byte_strings(
            [
                [(v or 0).to_bytes(4, "big", signed=True) for v in drawn["int"]],
                drawn["binary"],
                [(v or 0).to_bytes(2, "big", signed=True) for v in drawn["smallint"]],
            ]
        )
        assert [plain(r[len(types) + 1]) for r in rows] == [m.hex() for m in mixed]
        for i, t in enumerate(types):
            ranks = boundaries.from_values(t, drawn[t][:20]).range_ids(drawn[t])
            assert [r[len(types) + 2 + i] for r in rows] == ranks.tolist(), t

    run()


def test_collated_strings_sort_by_their_collation(spark: SparkSession, mode: str) -> None:
    if int(spark.version.split(".")[0]) < 4:
        pytest.skip("collations need Spark 4")
    words = ["b", "A", "a", "B", "ä", "Z", "z", "", "aa"]
    data = spark.createDataFrame([(i, w) for i, w in enumerate(words)], "row int, w string")
    for collation in ("UTF8_LCASE", "UNICODE", "UNICODE_CI", "de_AI", "UTF8_BINARY"):
        collated = f"w collate {collation}"
        rows = selected(data, f"dense_rank() over (order by {collated})",
                        f"zorder_value({collated})",
                        f"range_id({collated}, array_agg({collated}) over ())")  # fmt: skip
        assert [r[2] for r in rows] == [r[0] + 1 for r in rows], collation
        by_rank = sorted(rows)
        assert all(bytes(a[1]) <= bytes(b[1]) for a, b in zip(by_rank, by_rank[1:], strict=False))


@pytest.mark.parametrize(
    "call, sentence",
    [
        ("zorder_value()", "zorder_value needs at least one argument"),
        ("zorder_value(map(1, 2))", "not MAP<INT, INT>"),
        ("zorder_value(array(1))", "not ARRAY<INT>"),
        ("interleave_bits()", "interleave_bits needs at least one argument"),
        ("interleave_bits('a')", "interleave_bits takes integers and BINARY values, not STRING"),
        ("range_id(1)", "range_id takes two arguments, a value and an array of boundaries"),
        ("range_id(1, array('a'))", "not INT and ARRAY<STRING>"),
        ("range_id(1, 2)", "not INT and INT"),
    ],
)
def test_wrong_arguments(spark: SparkSession, call: str, sentence: str) -> None:
    with pytest.raises(Exception, match="(?s).*") as raised:
        spark.sql(f"select {call}").collect()
    assert sentence in str(raised.value)
