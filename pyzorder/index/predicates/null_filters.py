"""Builds filters over the index that keep files where a predicate may be NULL (see index_filters).

The rules and their proofs are those of the Scala class PredicateRules. The text of a predicate does
not show the casts that Spark adds. The rules therefore accept only operands that can be converted
to the comparison's type without any value becoming NULL.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations

from sqlglot import exp

from pyzorder.index.predicates import monotonic_functions
from pyzorder.index.predicates.bound_filters import NEVER, Filter, either
from pyzorder.index.predicates.conditions import (
    NotUnderstood,
    Text,
    affirmed,
    call_of,
    is_plain,
    operands,
    unwrapped,
)
from pyzorder.index.predicates.monotonic_functions import Find, Types, keeps_values

_OF_OPERANDS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between)
_OF_STRINGS = (exp.Like, exp.ILike)


class NullFilters:
    """Builds null filters for predicates and values."""

    def __init__(self, find: Find, types: Types, constant: Text) -> None:
        """For `find` and `types`, see IndexFilters.

        `constant` renders a constant expression as SQL, and raises NotUnderstood if it cannot.
        """
        self._find = find
        self._types = types
        self._constant = constant

    def of(self, node: exp.Expression) -> Filter:
        """Returns a filter that is true for every file with a row that makes the predicate NULL."""
        return self._typed(node)[0]

    def of_boolean(self, node: exp.Expression) -> Filter:
        """Like `of`, but for an expression that is used as a boolean.

        Does not return a filter for other types, because their conversion to boolean may yield
        NULL.
        """
        found, data_type = self._typed(node)
        return found if data_type == "boolean" else None

    def _typed(self, node: exp.Expression) -> tuple[Filter, str]:
        try:
            return self._of(node)
        except NotUnderstood:
            return None, ""

    def _of(self, node: exp.Expression) -> tuple[Filter, str]:
        """Returns the filter of an expression, and the expression's type.

        Raises:
            NotUnderstood: there is no rule for the expression.
        """
        node = affirmed(unwrapped(node))
        if not is_plain(node):
            raise NotUnderstood(f"this form of {node.key} is not supported")
        if self._called(node) in ("isnull", "isnotnull", "isnan") or isinstance(node, exp.Boolean):
            return NEVER, "boolean"
        if isinstance(node, (exp.Is, exp.NullSafeEQ)):
            operands(node)  # raises if Spark may group the operands differently
            return NEVER, "boolean"
        if isinstance(node, exp.Not):
            return self.of_boolean(node.this), "boolean"
        if isinstance(node, (exp.And, exp.Or)):
            sides = (self.of_boolean(side) for side in (node.this, node.expression))
            return either(*sides), "boolean"
        if isinstance(node, _OF_OPERANDS):
            filters, types = self._all(operands(node))
            if not all(keeps_values(a, b) for a, b in combinations(types, 2)):
                raise NotUnderstood("converting an operand may yield NULL")
            return reduce(either, filters), "boolean"
        if isinstance(node, _OF_STRINGS) or self._called(node) in (
            "contains", "endswith", "startswith",
        ):  # fmt: skip
            call = call_of(node)
            filters, types = self._all(call[1] if call else operands(node))
            if set(types) != {"string"}:
                raise NotUnderstood("converting an operand may yield NULL")
            return reduce(either, filters), "boolean"
        return self._value(node)

    def _value(self, node: exp.Expression) -> tuple[Filter, str]:
        if node.find(exp.Column) is None:
            text = self._constant.of(node)
            return f"({text} IS NULL)", self._types.of(text)
        side = monotonic_functions.side(node, self._find, self._types)
        return side.may_be_null, side.data_type

    def _all(self, nodes: list[exp.Expression]) -> tuple[list[Filter], list[str]]:
        found = [self._of(node) for node in nodes]
        return [f for f, _ in found], [t for _, t in found]

    @staticmethod
    def _called(node: exp.Expression) -> str:
        call = call_of(node)
        return call[0] if call else ""
