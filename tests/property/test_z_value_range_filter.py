"""The z-value box of a filter contains every row for which the filter is TRUE."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.property.test_order import key
from tests.vectors import oracle

NAN = float("nan")

#: For each type, the values that occur in filters and rows. Values in rows may also be null.
VALUES: dict[str, list[Any]] = {
    "int": [-(2**31), -7, 0, 3, 5, 2**31 - 1],
    "bigint": [-(2**40), 2**40, 2**63 - 1],
    "double": [float("-inf"), -2.5, 0.0, 1e-300, 5.0, float("inf"), NAN],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("0.01"), Decimal("7.00")],
    "decimal(25,3)": [Decimal("-1.500"), Decimal("0.000"), Decimal("1234567890123456789.125")],
    "string": ["", "\0", "a", "ab", "abc", "abcdefgh", "abcdefghi", "b", "é"],
}

#: A leaf is (kind, column, value). An inner node is ("And", left, right) or ("Or", left, right).
Filter = tuple[Any, ...]

Row = dict[str, Any]


class Java(NamedTuple):
    """Creates objects in the JVM. `types` are the types of the indexed columns."""

    spark: SparkSession
    types: dict[str, str]

    @property
    def jvm(self) -> Any:
        return self.spark._jvm

    def __getattr__(self, name: str) -> Any:
        """Returns a class from the predicates package. `IndexFilter_Below` stands for
        `IndexFilter.Below`."""
        return getattr(self.jvm.io.pyzorder.skipping.predicate, name.replace("_", "$"))

    def seq(self, items: list[Any]) -> Any:
        return self.jvm.PythonUtils.toSeq(items)

    def type(self, data_type: str) -> Any:
        return self.jvm.org.apache.spark.sql.types.DataType.fromDDL(data_type)

    def value(self, value: Any) -> Any:
        """The value in Catalyst's internal representation."""
        if isinstance(value, str):
            return self.jvm.org.apache.spark.unsafe.types.UTF8String.fromString(value)
        if isinstance(value, Decimal):
            return self.jvm.org.apache.spark.sql.types.Decimal.apply(str(value))
        return value

    def column(self, name: str) -> Any:
        """A column, or a function applied to a column if the name has the form `f(name)`. By
        default, the type of the column is INT."""
        path = name.rstrip(")").rsplit("(", 1)[-1]
        of = self.type(self.types.get(path, "int"))
        through = self.jvm.scala.Option.empty()
        if "(" in name:
            function = self.jvm.org.apache.spark.sql.catalyst.expressions.BoundReference
            through = self.jvm.scala.Option.apply(function(0, of, True))
        return self.FilterColumn(self.seq([path]), of, through, self.jvm.scala.Option.empty())

    def filter(self, filter_: Filter) -> Any:
        kind, *rest = filter_
        made = getattr(self, f"IndexFilter_{kind}")
        if kind in {"And", "Or"}:
            return made(*map(self.filter, rest))
        column = self.column(rest[0])
        if kind in {"Below", "Above"}:
            return made(column, self.value(rest[1]), rest[2])
        if kind in {"OneOf", "Other"}:
            return made(column, self.seq([self.value(value) for value in rest[1]]))
        return made(column, *map(self.value, rest[1:]))

    def indexed(self, name: str) -> Any:
        found = self.jvm.io.pyzorder.index.model.IndexedColumn
        return found(self.seq([name]), self.type(self.types[name]))

    def curve(self, *names: str) -> Any:
        made = self.jvm.io.pyzorder.index.model.ZValueColumn
        return made.apply(self.seq([self.seq([name]) for name in names]))

    def added(self, filter_: Filter, columns: list[Any]) -> list[dict[str, tuple[int, int]] | str]:
        """The text of the original filter, and the boxes that were added to it."""
        found = self.ZValueRangeFilter.added(self.filter(filter_), self.seq(columns))
        boxes: list[Any] = []
        while found.getClass().getSimpleName() == "And":
            added = found.right()
            if added.getClass().getSimpleName() != "ZValueRangeFilter":
                break
            ends = [
                [int(bits) % 2**64 for bits in end.mkString(" ").split()]
                for end in (added.low(), added.high())
            ]
            name = added.curve().path().head()
            names = name.removeprefix("zorder_value(").removesuffix(")").split(", ")
            boxes.insert(0, dict(zip(names, zip(*ends, strict=True), strict=True)))
            found = found.left()
        return [found.toString(), *boxes]


def bits(value: Any, data_type: str) -> int:
    """The ordered bits of a value."""
    return int(oracle.ordered_bits(value, data_type), 2)


GREATEST = 2**64 - 1
ALL = (0, GREATEST)
VALUE = (1, GREATEST)
A = {value: bits(value, "int") for value in (-7, 0, 3, 5, 9)}


def text(prefix: str, rest: bytes) -> int:
    """Pads the prefix with `rest` to eight bytes, and returns these bytes as a number."""
    return int.from_bytes(prefix.encode().ljust(8, rest)[:8], "big")


#: Filters on a table with columns `a INT, b STRING` that is clustered by both columns. Each filter
#: is followed by the box that is added, or by None if no box is added.
BOXES: list[tuple[Filter, tuple[tuple[int, int], tuple[int, int]] | None]] = [
    (("Below", "a", 5, True), ((1, A[5]), ALL)),
    (("Below", "a", 5, False), ((1, A[5]), ALL)),
    (("Above", "a", -7, False), ((A[-7], GREATEST), ALL)),
    (("OneOf", "a", [3]), ((A[3], A[3]), ALL)),
    (("OneOf", "a", [-7, 0, 5]), ((A[-7], A[5]), ALL)),
    (("HasNull", "a"), ((0, 0), ALL)),
    (("HasValue", "b"), (ALL, VALUE)),
    (("Prefix", "b", "ab"), (ALL, (text("ab", b"\0"), text("ab", b"\xff")))),
    (("Prefix", "b", ""), (ALL, VALUE)),
    (("Prefix", "b", "abcdefg"), (ALL, (text("abcdefg", b"\0"), text("abcdefg", b"\xff")))),
    (("Prefix", "b", "abcdefgh"), (ALL, (text("abcdefgh", b"\0"), text("abcdefgh", b"\0")))),
    (("Prefix", "b", "abcdefghi"), (ALL, (text("abcdefgh", b"\0"), text("abcdefgh", b"\0")))),
    # AND: the intersection of the boxes of both sides.
    (("And", ("Above", "a", 3, True), ("Below", "a", 5, True)), ((A[3], A[5]), ALL)),
    (("And", ("Below", "a", 5, True), ("Above", "a", 3, True)), ((A[3], A[5]), ALL)),
    (("And", ("Above", "a", -7, True), ("Above", "a", 3, True)), ((A[3], GREATEST), ALL)),
    (("And", ("Above", "a", 3, True), ("Above", "a", -7, True)), ((A[3], GREATEST), ALL)),
    (("And", ("Below", "a", -7, True), ("Below", "a", 3, True)), ((1, A[-7]), ALL)),
    (("And", ("Below", "a", 3, True), ("Below", "a", -7, True)), ((1, A[-7]), ALL)),
    (("And", ("OneOf", "a", [3]), ("HasNull", "b")), ((A[3], A[3]), (0, 0))),
    (("And", ("HasNull", "b"), ("OneOf", "a", [3])), ((A[3], A[3]), (0, 0))),
    # OR: the smallest box that contains the boxes of both sides.
    (("Or", ("OneOf", "a", [3]), ("OneOf", "a", [9])), ((A[3], A[9]), ALL)),
    (("Or", ("OneOf", "a", [9]), ("OneOf", "a", [3])), ((A[3], A[9]), ALL)),
    (("Or", ("OneOf", "a", [-7, 9]), ("OneOf", "a", [0, 3])), ((A[-7], A[9]), ALL)),
    (("Or", ("OneOf", "a", [0, 3]), ("OneOf", "a", [-7, 9])), ((A[-7], A[9]), ALL)),
    (("Or", ("HasNull", "a"), ("OneOf", "a", [3])), ((0, A[3]), ALL)),
    (("Or", ("OneOf", "a", [3]), ("HasNull", "b")), None),
    (("Or", ("HasNull", "b"), ("OneOf", "a", [3])), None),
    # Filters that do not restrict the values of a clustering column.
    (("Below", "c", 5, True), None),
    (("Below", "f(a)", 5, True), None),
    (("HasNaN", "a"), None),
    (("Other", "a", [5]), None),
    (("NotPrefix", "b", "ab"), None),
    (("And", ("OneOf", "a", [3]), ("Below", "f(a)", 0, True)), ((A[3], A[3]), ALL)),
]  # fmt: skip


@pytest.mark.variants
@pytest.mark.parametrize(("filter_", "box"), BOXES, ids=[str(f) for f, _ in BOXES])
def test_boxes(spark: SparkSession, filter_: Filter, box: Any) -> None:
    java = Java(spark, {"a": "int", "b": "string"})
    columns = [java.indexed("a"), java.indexed("b"), java.curve("a", "b")]
    expected = [] if box is None else [dict(zip("ab", box, strict=True))]
    assert java.added(filter_, columns) == [java.filter(filter_).toString(), *expected]


def test_a_column_of_another_type(spark: SparkSession) -> None:
    """No box is added if the query reads `a` as INT but the index records it as BIGINT."""
    filter_ = ("Below", "a", 5, True)
    indexed = Java(spark, {"a": "bigint"})
    columns = [indexed.indexed("a"), indexed.curve("a")]
    assert Java(spark, {"a": "int"}).added(filter_, columns)[1:] == []


def test_decimals_of_more_digits_than_the_column_has(spark: SparkSession) -> None:
    java = Java(spark, {"n": "decimal(9,2)"})
    columns = [java.indexed("n"), java.curve("n")]
    assert java.added(("Below", "n", Decimal("0.12345"), True), columns)[1:] == []
    seven = bits(Decimal("7.00"), "decimal(9,2)")
    assert java.added(("Below", "n", Decimal("7.0"), True), columns)[1:] == [{"n": (1, seven)}]


def test_several_curves(spark: SparkSession) -> None:
    """If OPTIMIZE runs have used different curves, each curve adds a box, unless one of its columns
    is not indexed."""
    java = Java(spark, {"a": "int", "b": "string"})
    filter_ = ("And", ("OneOf", "a", [3]), ("HasNull", "b"))
    a, b = java.indexed("a"), java.indexed("b")
    three, null = (A[3], A[3]), (0, 0)
    assert java.added(filter_, [a, b])[1:] == []
    assert java.added(filter_, [a, java.curve("a", "b")])[1:] == []
    columns = [java.curve("b"), a, b, java.curve("b", "a"), java.curve("a", "x")]
    assert java.added(filter_, columns)[1:] == [{"b": null}, {"b": null, "a": three}]


def holds(filter_: Filter, row: Row, types: dict[str, str]) -> bool:
    """Whether a filter's predicate is TRUE for a row."""
    kind, *rest = filter_
    if kind in {"And", "Or"}:
        sides = [holds(side, row, types) for side in rest]
        return all(sides) if kind == "And" else any(sides)
    value = row[rest[0]]
    if kind in {"HasNull", "HasValue"}:
        return (value is None) == (kind == "HasNull")
    if value is None:
        return False
    if kind == "Prefix":
        return bool(value.startswith(rest[1]))
    mine = key(value, types[rest[0]])
    if kind == "OneOf":
        return mine in [key(other, types[rest[0]]) for other in rest[1]]
    other = key(rest[1], types[rest[0]])
    return mine == other and rest[2] or (mine < other if kind == "Below" else mine > other)


@st.composite
def filters(draw: Any, types: dict[str, str], depth: int = 3) -> Filter:
    """Generates a filter on columns of the given types."""
    if depth > 0 and draw(st.booleans()):
        kind = draw(st.sampled_from(["And", "Or"]))
        return (kind, *(draw(filters(types, depth - 1)) for _ in range(2)))
    name = draw(st.sampled_from(sorted(types)))
    value = st.sampled_from([v for v in VALUES[types[name]] if v == v])
    kinds = ["Below", "Above", "OneOf", "HasNull", "HasValue"]
    kind = draw(st.sampled_from(kinds + ["Prefix"] * (types[name] == "string")))
    if kind in {"Below", "Above"}:
        return (kind, name, draw(value), draw(st.booleans()))
    if kind == "OneOf":
        listed = draw(st.lists(value, min_size=1, max_size=3, unique=True))
        return (kind, name, sorted(listed, key=lambda v: key(v, types[name])))
    return (kind, name, draw(value)) if kind == "Prefix" else (kind, name)


@settings(
    max_examples=150, deadline=None, database=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(data=st.data())
def test_no_row_that_matches_lies_outside(spark: SparkSession, data: st.DataObject) -> None:
    types = dict(zip("ab", data.draw(st.permutations(sorted(VALUES))), strict=False))
    java = Java(spark, types)
    filter_ = data.draw(filters(types))
    columns = [java.indexed("b"), java.curve("a", "b"), java.indexed("a")]
    _, *boxes = java.added(filter_, columns)
    for values in product(*([None, *VALUES[of]] for of in types.values())):
        row = dict(zip(types, values, strict=True))
        if holds(filter_, row, types):
            for box in boxes:
                assert isinstance(box, dict)
                for name, (low, high) in box.items():
                    assert low <= bits(row[name], types[name]) <= high, (row, box)
