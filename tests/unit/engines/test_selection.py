"""`pyzorder.files` leaves out files that cannot contain matching rows. If it cannot use a
condition, it reports why."""

from __future__ import annotations

import os
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyzorder
from pyzorder import ZOrderError
from pyzorder.engines.matching_files import matching_files
from tests.support.engine_tables import index, make, write
from tests.support.sampled import long


def rows(k: int) -> pa.Table:
    """Ten rows for file `k`. The values of each type are derived from `k`, and every third value of
    `i` is null."""
    day, naive = date(2024, 1, 1 + k), datetime(2024, 1, 1 + k, 12)
    return pa.table({
        "i": pa.array([10 * k + j if j % 3 else None for j in range(10)], pa.int32()),
        "s": [f"k{k}{j}" for j in range(10)],
        "d": [day] * 10,
        "n": pa.array([Decimal(k) + Decimal("0.25")] * 10, pa.decimal128(5, 2)),
        "x": [float(k)] * 9 + [float("nan") if k == 2 else float(k)],
        "b": [k > 2] * 10,
        "st": [{"y": k, "z.z": k}] * 10,
        "ts": pa.array([naive.replace(tzinfo=timezone.utc)] * 10, pa.timestamp("us", tz="UTC")),
        "tn": pa.array([naive] * 10, pa.timestamp("us")),
        "bin": [bytes([k, 255])] * 10,
    })  # fmt: skip


#: Conditions, and the files that each condition keeps ("13" stands for f1.parquet and f3.parquet).
#: The table has five files.
CASES = [
    ("i = 15", "1"), ("15 = i", "1"), ("i > 25 AND s < 'k3'", "2"), ("i IN (1, 45, 100)", "04"),
    ("i NOT IN (1, 2)", "01234"), ("NOT (i < 30)", "34"), ("i BETWEEN 9 AND 21", "12"),
    ("i IS NULL", "01234"), ("i <=> 15", "1"), ("i <=> NULL", "01234"), ("i = NULL", ""),
    (" OR ".join(["i = 15", *(f"i = {k}" for k in range(1000, 1400))]), "1"),
    (" AND ".join(["i > 15", *(f"i != {k}" for k in range(1000, 1200))]), "1234"),
    ("i > 25.5", "234"), ("i = 3000000000", ""), ("i = '15'", "1"), ("i = 1e1", ""), ("i < i", ""),
    ("I = 15", "1"), ("`i` = 15", "1"), ("i = 15 OR s = 'k33'", "13"),
    ("s LIKE 'k3%'", "3"), ("s NOT LIKE 'k3%'", "0124"), ("startswith(s, 'k11')", "1"),
    ("d = '2024-01-02'", "1"), ("d >= DATE'2024-01-04'", "34"), ("year(d) = 2023", ""),
    ("n = 1.25", "1"), ("n > 3", "34"), ("n < 1e0", "0"),
    ("x > 3.5", "24"), ("x = double('NaN')", "2"), ("NOT (x < 3)", "234"), ("isnan(x)", "2"),
    ("b", "34"), ("NOT b", "012"), ("b = true", "34"), ("b IS NULL", ""),
    ("st.y = 2", "2"), ("st.`z.z` = 2", "2"), ("ST.Y = 2", "2"),
    ("ts >= '2024-01-03T12:00:00Z'", "234"), ("tn = '2024-01-03 12:00:00'", "2"),
    ("tn >= DATE'2024-01-04'", "34"), ("bin > X'02FF'", "34"),
    ("i + 0 = 15", "01234"), ("lower(s) = 'k11'", "01234"), ("lower(s) = 'x' AND i = 15", "1"),
    ("u = 7", "01234"), ("u = 7 AND i = 15", "1"), ("u = 7 OR i = 15", "01234"),
    ("d < current_date", "01234"), ("timestampdiff(DAY, tn, ts) = 0 AND i = 15", "1"),
    ("datediff(DAY, tn, ts) = 0", "01234"), ("_metadata.file_size > 0", "01234"),
    ("exists(array(1), v -> v = 1)", "01234"), ("i IN (SELECT v FROM t)", "01234"),
    ("m.k = 1 AND i = 15", "1"), ("u.f = 7", "01234"),
    ("ts >= '2024-01-03'", "01234"), ("s = 'a\\b'", "01234"), ("i = (SELECT 1)", "01234"),
    ("i IN (SELECT 1)", "01234"), ("rand() < 0.5", "01234"), ("false", ""), ("true", "01234"),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose index has no statistics for the columns u and m."""
    folder, files = (
        tmp_path_factory.mktemp("selection"),
        {f"f{k}.parquet": rows(k) for k in range(5)},
    )
    maps = pa.array([[("k", 1)]] * 10, pa.map_(pa.string(), pa.int64()))
    for name, indexed in files.items():
        write(folder, {name: indexed.append_column("u", [range(10)]).append_column("m", maps)})
    index(folder, files)
    return folder


def kept(table: Path, where: str | None, **options) -> str:
    return "".join(Path(path).stem[1:] for path in pyzorder.files(table, where, **options))


@pytest.mark.parametrize(("where", "expected"), CASES)
def test_conditions(table: Path, where: str, expected: str) -> None:
    assert kept(table, where) == expected


def test_a_time_zone(table: Path) -> None:
    assert kept(table, "ts >= '2024-01-03 12:00:00'", time_zone="UTC") == "234"
    assert kept(table, "ts >= '2024-01-03 12:00:00'", time_zone="America/New_York") == "34"
    with pytest.raises(ZOrderError, match="ZORDER_ENGINE_TABLE"):
        pyzorder.files(table, "ts = '2024-01-03'", time_zone="Mars/Olympus")


def test_reasons(table: Path) -> None:
    found = matching_files(table, "u = 7 AND i = 15 AND ts > '2024-01-01'", None, None, None)
    assert (len(found.paths), found.total, found.unindexed) == (1, 5, 0)
    first, second = found.reasons
    assert "the index has no statistics for u" in first
    assert "depends on a time zone" in second


#: (condition with misspelled columns, first misspelled column, first column that the error message
#: suggests)
MISSPELLED = [
    ("custmer_id = 8", "custmer_id", "customer_id"), ("day = 1 AND DAI = 2", "DAI", "day"),
    ("upper(Custmer_ID) = 'A' OR day = 1", "Custmer_ID", "customer_id"),
    ("place.citi = 'x'", "place.citi", "place.city, place"),
    ("datediff(DAY, day, dy) > 1", "dy", "day"), ("x = 1", "x", "customer_id, place.city, day, place"),
]  # fmt: skip


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("where", "column", "known"), MISSPELLED)
def test_a_misspelled_column(
    tmp_path: Path, where: str, column: str, known: str, indexed: bool
) -> None:
    """`files` and `dataset` raise the same error, whether or not the table has an index."""
    files = {"day=1/a.parquet": pa.table({"customer_id": [7], "place": [{"city": "x"}]})}
    write(tmp_path, files)
    if indexed:
        index(tmp_path, files)
    for opened in (pyzorder.files, pyzorder.dataset):
        with pytest.raises(ZOrderError) as raised:
            opened(tmp_path, where)
        assert raised.value.condition == "ZORDER_UNKNOWN_COLUMN"
        assert f"There is no column {column} in {tmp_path}." in str(raised.value)
        if indexed:
            assert f"Use one of its columns: {known}" in str(raised.value)


def test_columns_of_some_files(tmp_path: Path) -> None:
    """Columns of the first file, the newest file, the index and the caller's schema are known."""
    files = {
        "a.parquet": pa.table({"first": [1]}),
        "b.parquet": pa.table({"newest": [1]}),
        "c.parquet": pa.table({"other": [1]}),
    }
    write(tmp_path, files)
    index(tmp_path, {"c.parquet": pa.table({"indexed": [1]})})
    for number, name in enumerate(("a.parquet", "c.parquet", "b.parquet")):
        os.utime(tmp_path / name, (number, number))
    condition = "first = 1 AND newest = 1 AND indexed = 1"
    assert len(pyzorder.files(tmp_path, condition)) == 3
    with pytest.raises(ZOrderError, match="There is no column other"):
        pyzorder.files(tmp_path, f"{condition} AND other = 1")
    schema = pa.schema([("other", pa.int64())])
    assert len(pyzorder.dataset(tmp_path, f"{condition} AND other = 1", schema=schema).files) == 3
    (tmp_path / "b.parquet").write_bytes(b"damaged")
    os.utime(tmp_path / "b.parquet", (2, 2))
    assert len(pyzorder.files(tmp_path, "unknown = 1")) == 3
    with pytest.raises(ZOrderError, match="ZORDER_UNREADABLE|ZORDER_UNKNOWN"):
        (tmp_path / "a.parquet").write_bytes(b"damaged")
        pyzorder.dataset(tmp_path, "unknown = 1")


def test_other_engines_refuse_unknown_columns(table: Path) -> None:
    """Polars and PyArrow queries fail if a column is unknown, as `files` and `dataset` do."""
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="unknown"):
        pyzorder.scan_polars(table).filter(pl.col("unknown") == 1).collect()
    with pytest.raises(pa.ArrowInvalid, match="unknown"):
        pyzorder.dataset(table).to_table(filter=pc.field("unknown") == 1)


def test_the_log(table: Path, caplog: pytest.LogCaptureFixture) -> None:
    """`files` and `dataset` log the parts of a condition that are not used to rule out files."""
    for opened in (pyzorder.files, pyzorder.dataset):
        caplog.clear()
        with caplog.at_level("INFO"):
            opened(table, "u = 7")
        assert "the index has no statistics for u" in caplog.text


@pytest.mark.parametrize(
    "where", ["", "i = = 3", "SELECT 1", "i = 1; i = 2", "DROP TABLE t", "i x", "i IN ()"]
)
def test_no_conditions(table: Path, where: str) -> None:
    with pytest.raises(ZOrderError) as raised:
        pyzorder.files(table, where)
    assert raised.value.condition == "ZORDER_NOT_A_CONDITION"


def test_a_deep_condition(table: Path) -> None:
    assert kept(table, "NOT (" * 3000 + "i = 15" + ")" * 3000) == "01234"


@pytest.mark.parametrize("count", long([100, 1000, 3000], 100, 1000))
def test_a_long_condition(table: Path, count: int) -> None:
    """If a condition is too long for the parser or for the rules, either all files or exactly the
    matching files are kept."""
    numbers = range(100, 100 + count)
    for joined, matching in (
        (" OR ".join(f"i = {n}" for n in numbers), ""),
        (" OR ".join([*(f"i = {n}" for n in numbers), "length(s) = 3"]), "01234"),
        (" AND ".join(["i = 15", *(f"i != {n}" for n in numbers)]), "1"),
        (f"i IN (15, {', '.join(map(str, numbers))})", "1"),
    ):
        assert set(kept(table, joined)) in (set(matching), set("01234"))


# ---- files without usable statistics ------------------------------------------------------------


FILES = {f"f{k}.parquet": rows(k) for k in range(3)}


def test_changed_and_new_files(tmp_path: Path) -> None:
    make(tmp_path, FILES)
    write(tmp_path, {"f3.parquet": rows(3)})
    os.utime(tmp_path / "f1.parquet", (1, 1))
    assert kept(tmp_path, "i = 999") == "13"
    (tmp_path / "f0.parquet").unlink()
    assert kept(tmp_path, "i < 9") == "13"


def test_no_index(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    assert kept(tmp_path, "i = 15") == "012"
    found = matching_files(tmp_path, "i = 15", None, None, None)
    assert found.unindexed == 3


def test_a_broken_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make(tmp_path, FILES)
    (snapshot,) = (tmp_path / "_zorder" / "_index").glob("_snapshot-*")
    snapshot.write_bytes(b"garbage")
    assert kept(tmp_path, "i = 15") == kept(tmp_path, "i = 15") == "012"
    assert len([r for r in caplog.records if "cannot be used" in r.getMessage()]) == 1


@pytest.mark.parametrize(
    ("changed", "where", "expected"),
    [
        ({"i": {"bounds": None}}, "i = 15", "012"),
        ({"i": {"null_count": None}}, "i IS NULL", "012"),
        ({"b": {"null_count": None}}, "b IS NULL", "012"),
        ({"x": {"nan_seen": True}}, "x > 1e300", "012"),
        ({"ts": {"settings_dependent": True}}, "ts > '2030-01-01T00:00:00Z'", "012"),
        ({"tn": {"settings_dependent": True}}, "tn > '2030-01-01'", "012"),
        ({"d": {"settings_dependent": True}}, "d > '2030-01-01'", ""),
        ({"d": {"settings_dependent": True, "bounds": (-141_428, 0)}}, "d > '2030-01-01'", "012"),
    ],
)
def test_unknown_statistics(
    tmp_path: Path, changed: dict[str, dict[str, object]], where: str, expected: str
) -> None:
    write(tmp_path, FILES)
    index(tmp_path, FILES, changed=changed)
    assert kept(tmp_path, where) == expected


@pytest.mark.parametrize(
    "settings",
    ["fieldIds=true | ", "orcPositions=TRUE | ", "caseSensitive=true | ", "unreadable", ""],
)
def test_columns_that_are_not_found_by_name(
    tmp_path: Path, settings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.engine_tables.SETTINGS", settings)
    make(tmp_path, FILES)
    assert kept(tmp_path, "i = 15") == "012"


def test_names_that_differ_in_case(tmp_path: Path) -> None:
    files = {f"f{k}.parquet": pa.table({"a": [k], "A": [-k]}) for k in range(3)}
    make(tmp_path, files)
    assert kept(tmp_path, "a = 1") == "1" and kept(tmp_path, "A = -2") == "2"


@pytest.mark.parametrize("name", [b"f\xff.parquet", b"a\xff.parquet"])
def test_a_name_that_is_not_text(tmp_path: Path, name: bytes) -> None:
    """The file may be the first and the newest, whose schema would otherwise be read. Only Python
    can open it."""
    make(tmp_path, FILES)
    odd = os.fsencode(tmp_path) + b"/" + name
    with open(odd, "wb") as file:
        file.write((tmp_path / "f0.parquet").read_bytes())
    found = pyzorder.files(tmp_path, "i = 15")
    expected = {os.fsencode(tmp_path) + b"/f1.parquet", odd}
    assert {os.fsencode(path) for path in found} == expected
    message = "xff.parquet cannot be read: its name is not UTF-8"
    with pytest.raises(ZOrderError, match=message):
        pyzorder.dataset(tmp_path, where="i = 15")
    with pytest.raises(ZOrderError, match=message):
        pyzorder.scan_polars(tmp_path).collect()


def test_an_empty_file(tmp_path: Path) -> None:
    make(tmp_path, {"f0.parquet": rows(0), "f1.parquet": rows(1).slice(0, 0)})
    assert kept(tmp_path, "i IS NULL OR i >= 0") == "0"


# ---- partition columns --------------------------------------------------------------------------

#: Conditions on the partition columns p (INT) and q (STRING) and on the data column a, and the
#: folders of the files that each condition keeps.
PARTITIONED = [
    ("p = 1", ["p=1/q=x", "p=1/q=y"]), ("p IS NULL", ["p=__HIVE_DEFAULT_PARTITION__/q=x"]),
    ("p > 1 AND q = 'y'", ["p=2/q=y"]), ("p != 1", ["p=2/q=y"]), ("P = 2 OR a = 10", ["p=1/q=x", "p=2/q=y"]),
    ("q LIKE 'y%' AND a < 15", []), ("p + 1 = 2", ["p=1/q=x", "p=1/q=y", "p=2/q=y"]),
]  # fmt: skip


@pytest.mark.parametrize(("where", "expected"), PARTITIONED)
def test_partition_columns(tmp_path: Path, where: str, expected: list[str]) -> None:
    """Conditions on p use the partition's value, although the files also contain a column p."""
    places = ["p=1/q=x", "p=1/q=y", "p=2/q=y", "p=__HIVE_DEFAULT_PARTITION__/q=x"]
    files = {
        f"{place}/f.parquet": pa.table({"a": [10 * (k + 1)], "p": [99]})
        for k, place in enumerate(places)
    }
    make(tmp_path, files)
    found = [str(Path(p).parent.relative_to(tmp_path)) for p in pyzorder.files(tmp_path, where)]
    assert found == expected


def test_a_partition_of_timestamps(tmp_path: Path) -> None:
    """Comparisons with a timestamp partition column do not skip any files. The column's values
    depend on the time zone of Spark's session, and this time zone is unknown."""
    make(tmp_path, {"t=2024-01-01 00%3A00%3A00/f0.parquet": pa.table({"a": [1]})})
    assert kept(tmp_path, "t > TIMESTAMP'2025-01-01 00:00:00Z'", time_zone="UTC") == "0"
    assert kept(tmp_path, "t IS NULL") == ""


def test_many_files_agree_with_a_scan(tmp_path: Path) -> None:
    """On files with random bounds, a file is kept if and only if its range intersects the
    condition's range."""
    random = np.random.default_rng(5)
    files = {
        f"f{k:02}.parquet": pa.table(
            {"a": random.integers(lo := int(random.integers(90)), lo + 9, 4)}
        )
        for k in range(40)
    }
    make(tmp_path, files)
    for low in range(0, 100, 7):
        expected = [
            name for name, table in files.items()
            if max(table["a"].to_pylist()) >= low and min(table["a"].to_pylist()) <= low + 3
        ]  # fmt: skip
        found = pyzorder.files(tmp_path, f"a BETWEEN {low} AND {low + 3}")
        assert [Path(path).name for path in found] == expected
