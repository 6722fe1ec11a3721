"""A workload is counted correctly, and names that refer to the advised table are recognized."""

from __future__ import annotations

import pytest

from pyzorder.advisor.workload import Reading, TableNames, Workload

NAMED = TableNames(("db", "Sales"), "file:/data/sales", ("a",))
BY_PATH = TableNames((), "s3a://bucket/sales", ("a",))

# (the table, the parts of a name, whether the name refers to the table)
NAMES = [
    (NAMED, ("db", "sales"), True),
    (NAMED, ("DB", "SALES"), True),
    (NAMED, ("spark_catalog", "db", "sales"), True),
    (NAMED, ("other", "db", "sales"), False),
    (NAMED, ("other", "sales"), False),
    (NAMED, ("parquet", "/data/sales"), True),
    (NAMED, ("ORC", "file:///data/sales/"), True),
    (NAMED, ("parquet", "/data/Sales"), False),
    (BY_PATH, ("parquet", "s3a://bucket/sales/"), True),
    (BY_PATH, ("parquet", "/bucket/sales"), False),
    (BY_PATH, ("db", "sales"), False),
    (BY_PATH, (), False),
]


@pytest.mark.parametrize(("table", "parts", "means"), NAMES)
def test_names(table: TableNames, parts: tuple[str, ...], means: bool) -> None:
    assert table.match(parts) == means


def test_merged_counts() -> None:
    one, other = Workload(), Workload()
    one.add([Reading((), ())])
    other.add([])
    other.add([Reading((), ()), Reading((), ())])
    other.leave_out("filters: f", "f(\n  a)", 2)
    one.merge(other, times=3)
    assert (one.statements, one.reading_statements) == (7, 4)
    assert one.readings == {Reading((), ()): 7}
    assert one.unread == {"filters: f": 6} and one.examples == {"filters: f": "f( a)"}
