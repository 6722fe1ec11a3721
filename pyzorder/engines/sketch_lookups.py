"""Uses the sketches of columns to rule out files (sql/FORMAT.md, section "Sketches")."""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import xxhash
from sqlglot import exp

from pyzorder.engines.evaluation import Evaluator
from pyzorder.engines.file_statistics import FileStatistics
from pyzorder.engines.tables import Table
from pyzorder.engines.values import Value, aligned, is_null_constant, of_type, sql_name
from pyzorder.index import sketches
from pyzorder.index.predicates.conditions import (
    NotUnderstood,
    Text,
    chain,
    is_plain,
    operands,
    parts_of,
    unwrapped,
)
from pyzorder.index.predicates.monotonic_functions import FLOATS, INTEGRAL, Find, decimal_of
from pyzorder.index.snapshot_statistics import Flags

#: The bits of NaN in Java. All NaNs are equal in Spark.
_NAN = 0x7FF8000000000000

#: Types that `Value` represents as integers. Their values are looked up only if Spark compares them
#: without converting them to another type.
_COUNTS = ("date", "timestamp", "timestamp_ntz")


class SketchLookups:
    """Looks up the constants of a condition in the sketches of the columns.

    Only `=`, `<=>` and IN, and their combinations with AND and OR, rule out files. Each of these
    comparisons is TRUE for a row only if the column's value equals one of the constants, and equal
    values have equal hashes.
    """

    def __init__(
        self,
        table: Table,
        statistics: FileStatistics,
        find: Find,
        evaluator: Evaluator,
        by_bounds: Callable[[exp.Expression], Flags],
    ) -> None:
        """`find` resolves columns, `evaluator` computes constants, and `by_bounds` returns the
        files that bounds do not rule out for a condition."""
        self._table = table
        self._statistics = statistics
        self._find = find
        self._evaluator = evaluator
        self._by_bounds = by_bounds
        self._text = Text(_no_column)

    def kept(self, condition: exp.Expression, files: Flags) -> Flags:
        """Returns the files that may have a row for which the condition is TRUE. `files` are the
        files that bounds do not rule out."""
        if self._table.snapshot is None or not self._table.snapshot.pointer.sketches:
            return files
        try:
            return self._kept(condition, files)
        except RecursionError:  # the condition is nested too deeply
            return files

    def _kept(self, node: exp.Expression, files: Flags) -> Flags:
        node = unwrapped(node)
        if isinstance(node, exp.And):
            for side in chain(node, exp.And):
                files = self._kept(side, files)
            return files
        if isinstance(node, exp.Or):
            found = np.zeros_like(files)
            for side in chain(node, exp.Or):
                found |= self._kept(side, files & ~found & self._by_bounds(side))
            return found
        try:
            return self._with_values(node, files)
        except (NotUnderstood, pa.ArrowException):
            return files

    def _with_values(self, node: exp.Expression, files: Flags) -> Flags:
        if not isinstance(node, (exp.EQ, exp.NullSafeEQ, exp.In)) or not is_plain(node):
            return files
        first, *others = (unwrapped(operand) for operand in operands(node))
        if not isinstance(first, exp.Column) and len(others) == 1:
            first, others = others[0], [first]
        if not isinstance(first, exp.Column):
            return files
        number = self._find(parts_of(first)).number
        if number >= len(self._statistics.columns):  # a partition column
            return files
        column = self._statistics.columns[number]
        constants = [self._evaluator.value_of(self._text.of(other)) for other in others]
        if isinstance(node, exp.NullSafeEQ) and any(map(is_null_constant, constants)):
            return files
        wanted = of_type(sql_name(column.data_type))
        hashes = [
            self._hash(wanted, constant) for constant in constants if not is_null_constant(constant)
        ]
        known = self._statistics.portable.known(column)
        asked = np.flatnonzero(files & self._statistics.is_indexed)
        asked = asked[known[self._statistics.entries[asked]]]
        result = files.copy()
        result[asked] = sketches.may_hold(
            self._table.store,
            self._statistics.portable.snapshot,
            column,
            [found for found in hashes if found is not None],
            self._statistics.entries[asked],
        )
        return result

    def _hash(self, column: Value, constant: Value) -> int | None:
        """Returns the hash of the value that equals a constant and has the column's type; None if
        there is no such value.

        Raises:
            NotUnderstood: several values may equal the constant, or the column has no sketches.
        """
        own = column.data_type
        _, compared = aligned(column, constant, self._evaluator.time_zone)
        value, data_type = compared.data.as_py(), compared.data_type
        if own in INTEGRAL and data_type in INTEGRAL or own in _COUNTS and own == data_type:
            return _of_long(value)
        if own in FLOATS and data_type in FLOATS:
            return _of_double(value)
        if own in ("string", "binary") and own == data_type:
            return xxhash.xxh64_intdigest(value)
        if isinstance(value, Decimal) and (own in INTEGRAL or own.startswith("decimal")):
            return _of_unscaled(value, 0 if own in INTEGRAL else decimal_of(own)[1])
        raise NotUnderstood(f"values of type {own} cannot be looked up as {data_type}")


def _of_long(value: int) -> int:
    return xxhash.xxh64_intdigest(value.to_bytes(8, "little", signed=True))


def _of_double(value: float) -> int:
    is_nan = value != value
    data = _NAN.to_bytes(8, "little") if is_nan else struct.pack("<d", value or 0.0)
    return xxhash.xxh64_intdigest(data)


def _of_unscaled(value: Decimal, scale: int) -> int | None:
    with decimal.localcontext(prec=200):
        unscaled = value.scaleb(scale)
        if unscaled != unscaled.to_integral_value():
            return None
        whole = int(unscaled)
    if -(2**63) <= whole < 2**63:
        return _of_long(whole)
    length = (whole + (whole < 0)).bit_length() // 8 + 1
    return xxhash.xxh64_intdigest(whole.to_bytes(length, "big", signed=True))


def _no_column(parts: tuple[str, ...]) -> str:
    raise NotUnderstood(f"{'.'.join(parts)} is not a constant")
