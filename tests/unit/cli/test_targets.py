"""The names of tables and columns on the command line are parsed correctly."""

from __future__ import annotations

import contextlib

import click
import pytest

from pyzorder.cli.targets import ColumnsType, Target, TargetType, names

# (as written on the command line, what it means)
NAMES = [
    ("a", [("a",)]),
    (" a , b ", [("a",), ("b",)]),
    ("a,c.d", [("a",), ("c", "d")]),
    ("unit price,x", [("unit price",), ("x",)]),
    ("`odd, name`.x", [("odd, name", "x")]),
    ("`a``b`", [("a`b",)]),
    ("a) DRY RUN --", [("a) DRY RUN --",)]),
    ("größe", [("größe",)]),
]

NO_NAMES = ["", ",", "a,", "a,,b", "a.", ".a", "`a", "a`b", "``", "`a`b"]

TARGETS = [
    ("sales", Target(name=("sales",))),
    ("db.sales", Target(name=("db", "sales"))),
    ("`a/b`", Target(name=("a/b",))),
    ("/data/sales", Target(path="/data/sales")),
    ("./sales", Target(path="./sales")),
    (".", Target(path=".")),
    ("s3a://bucket/a.b,c", Target(path="s3a://bucket/a.b,c")),
    ("/data/it's `odd`", Target(path="/data/it's `odd`")),
    ("parquet.`/data/sales`", Target(path="/data/sales", format="parquet")),
    ("ORC.`data`", Target(path="data", format="orc")),
    ("parquet./data/sales", Target(path="/data/sales", format="parquet")),
    ("parquet.s3a://b/t", Target(path="s3a://b/t", format="parquet")),
    ("parquet.sales", Target(name=("parquet", "sales"))),
]


@pytest.mark.parametrize(("text", "meant"), NAMES)
def test_names(text: str, meant: list[tuple[str, ...]]) -> None:
    assert names(text) == meant


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_names(text: str) -> None:
    with pytest.raises(click.BadParameter):
        names(text)


def test_columns_are_quoted() -> None:
    for text in ("a,c.d,`x``,y`", " (a, c.d, `x``,y`) "):
        assert ColumnsType().convert(text, None, None) == ["`a`", "`c`.`d`", "`x``,y`"]


EXPRESSIONS = [
    ("a, lower(c.d)", ["`a`", "lower(c.d)"]),
    ("(concat(a, ','), b)", ["concat(a, ',')", "`b`"]),
    ("a < b,a-b", ["a < b", "`a-b`"]),
    ("m['k'] = 1", ["m['k'] = 1"]),
]


@pytest.mark.parametrize(("text", "items"), EXPRESSIONS)
def test_expressions_are_kept(text: str, items: list[str]) -> None:
    assert ColumnsType().convert(text, None, None) == items


@pytest.mark.parametrize("text", ["lower(a", "a < b; DROP TABLE t --", "lower(a), "])
def test_incomplete_expressions(text: str) -> None:
    """Text that is not a list of expressions is read as names."""
    with contextlib.suppress(click.BadParameter):
        assert all(name.startswith("`") for name in ColumnsType().convert(text, None, None))


@pytest.mark.parametrize(("text", "meant"), TARGETS)
def test_targets(text: str, meant: Target) -> None:
    assert TargetType().convert(text, None, None) == meant
