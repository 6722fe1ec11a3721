"""Builds Spark SQL filters over the index that keep files where a predicate may be TRUE.

The rules and their proofs are those of the Scala classes PredicateRules and IndexFilter. A filter
is false only for files without a row that makes the predicate TRUE. It does not distinguish between
FALSE and NULL, so filters compose only through AND and OR, and NOT is pushed down to the leaves
first. A filter of None keeps every file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from sqlglot import exp

from pyzorder.index.predicates import monotonic_functions
from pyzorder.index.predicates.bound_filters import (
    NEVER,
    Constant,
    Filter,
    both,
    compared,
    either,
    listed,
    ordered,
    starting,
)
from pyzorder.index.predicates.conditions import (
    NotUnderstood,
    Text,
    affirmed,
    call_of,
    chain,
    is_beyond_bigint,
    is_negated,
    is_plain,
    needed_columns,
    operands,
    unwrapped,
)
from pyzorder.index.predicates.monotonic_functions import INTEGRAL, Find, Side, Types
from pyzorder.index.predicates.null_filters import NullFilters

_ORDERED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)

_OF_TWO = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.NullSafeEQ)

_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ, exp.Like, exp.ILike)

_NEGATED = {exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT}


class IndexFilters:
    """Builds filters for predicates."""

    def __init__(self, find: Find, types: Types) -> None:
        """`find` resolves columns. `types` determines the types of columns and constants."""
        self._find = find
        self._types = types
        self._bare = Text(lambda parts: self._no_column(parts))
        self._nulls = NullFilters(find, types, self._bare)

    def of(self, predicate: exp.Expression) -> Filter:
        """Returns a filter that is true for every file with a row that makes the predicate TRUE."""
        try:
            return self._judged(predicate, negated=False)
        except RecursionError:  # the predicate is nested too deeply
            return None

    def _judged(self, node: exp.Expression, negated: bool) -> Filter:
        node = unwrapped(node)
        if isinstance(node, exp.Not):
            return self._judged(node.this, not negated)
        if isinstance(node, (exp.And, exp.Or)):
            combine = both if isinstance(node, exp.And) != negated else either
            sides = chain(node, type(node))
            return _combined(combine, [self._judged(side, negated) for side in sides])
        if is_negated(node):
            return self._judged(affirmed(node), not negated)
        try:
            if self._is_folded(node):
                return None
            found = self._leaf(node, negated)
        except NotUnderstood:
            found = None
        return found or both(self._not_null(node), self._of_constant_file(node, negated))

    def _is_folded(self, node: exp.Expression) -> bool:
        """Whether Spark may fold a comparison to TRUE or FALSE, even for rows with nulls.

        Spark may fold comparisons of an integer with a DECIMAL that does not fit into BIGINT.
        """
        if not isinstance(node, _ORDERED) or not any(map(is_beyond_bigint, operands(node))):
            return False
        sides = [operand for operand in operands(node) if self._is_side(operand)]
        try:
            return any(self._side(operand).data_type in INTEGRAL for operand in sides)
        except NotUnderstood:
            return True

    def _leaf(self, node: exp.Expression, negated: bool) -> Filter:
        if not is_plain(node):
            return None
        if isinstance(node, exp.Boolean):
            return NEVER if bool(node.this) == negated else None
        if isinstance(node, exp.Null):
            return NEVER
        if isinstance(node, exp.Column):
            wanted = Constant("FALSE" if negated else "TRUE", "boolean")
            return compared(exp.EQ, self._side(node), wanted, self._types)
        if isinstance(node, exp.Is):
            return self._is(operands(node)[0], node.expression, negated)
        if isinstance(node, exp.NullSafeEQ) and isinstance(unwrapped(node.expression), exp.Boolean):
            value, asked = operands(node)
            return self._is(value, unwrapped(asked), negated)
        if isinstance(node, _OF_TWO) and self._is_same(*operands(node)):
            return self._with_itself(node, negated)
        if isinstance(node, exp.NEQ):
            return self._leaf(exp.EQ(this=node.this, expression=node.expression), not negated)
        if isinstance(node, (exp.LT, exp.LTE, exp.GT, exp.GTE)):
            kind = _NEGATED[type(node)] if negated else type(node)
            return self._comparison(kind, *operands(node))
        if isinstance(node, (exp.EQ, exp.NullSafeEQ)):
            return self._equality(node, negated)
        if isinstance(node, exp.Between):
            value, low, high = operands(node)
            if negated:
                return either(
                    self._comparison(exp.LT, value, low), self._comparison(exp.GT, value, high)
                )
            return both(
                self._comparison(exp.GTE, value, low), self._comparison(exp.LTE, value, high)
            )
        if isinstance(node, exp.In):
            value, *others = operands(node)
            side, constants = self._side(value), [self._constant(other) for other in others]
            return listed(side, constants, negated, self._types)
        if isinstance(node, exp.Like):
            return self._like(operands(node), negated)
        return self._called(node, negated)

    def _is(self, value: exp.Expression, asked: exp.Expression, negated: bool) -> Filter:
        """Returns the filter for IS or IS NOT followed by NULL, TRUE or FALSE.

        A predicate that is not NULL is either TRUE or FALSE.
        """
        if isinstance(asked, exp.Boolean):
            if not negated:
                return self._judged(value, negated=not asked.this)
            return either(
                self._judged(value, negated=bool(asked.this)), self._nulls.of_boolean(value)
            )
        if not isinstance(asked, exp.Null):
            return None
        if not negated:
            return self._nulls.of(value)
        if isinstance(unwrapped(value), (*_OF_TWO, exp.And, exp.Or, exp.Not, exp.In, exp.Between)):
            return either(self._judged(value, negated=False), self._judged(value, negated=True))
        return self._have_values(value)

    def _with_itself(self, node: exp.Expression, negated: bool) -> Filter:
        """Returns the filter for a comparison of an expression with itself.

        `a < a` is never TRUE, and `a = a` is never FALSE, because NaN equals itself.
        """
        holds = not isinstance(node, (exp.NEQ, exp.LT, exp.GT))
        return NEVER if holds == negated else None

    def _is_same(self, a: exp.Expression, b: exp.Expression) -> bool:
        """Whether both are the same deterministic expression."""
        if unwrapped(a) != unwrapped(b):
            return False
        Text(lambda parts: self._find(parts).source).of(a)  # raises unless deterministic
        return True

    def _called(self, node: exp.Expression, negated: bool) -> Filter:
        name, arguments = call_of(node) or ("", [])
        if name == "isnan" and not negated:
            return self._side(arguments[0]).may_be_nan
        if name == "startswith" and len(arguments) == 2:
            side, constant = self._side(arguments[0]), self._constant(arguments[1])
            if side.data_type == constant.data_type == "string":
                return starting(side, constant, negated)
        return None

    def _equality(self, node: exp.Expression, negated: bool) -> Filter:
        left, right = self._sides(*operands(node))
        null_safe = isinstance(node, exp.NullSafeEQ)
        if null_safe and left.data_type != right.data_type == "string":
            # Without ANSI mode, a string that cannot be cast becomes NULL, and <=> matches nulls.
            return None
        if isinstance(right, Side):
            if negated:
                return None
            equal = both(ordered(exp.LTE, left, right), ordered(exp.LTE, right, left))
            if not null_safe or equal is None:
                return equal
            return either(both(left.may_be_null, right.may_be_null), equal)
        found = compared(exp.NEQ if negated else exp.EQ, left, right, self._types)
        if not null_safe or found is None:
            return found
        # `<=>` is never NULL. It is TRUE if both sides are null, and FALSE if only one is.
        if negated:
            return (f"(({right.text} IS NULL AND {left.may_have_value}) OR ({right.text} IS NOT "
                    f"NULL AND {left.may_be_null}) OR {found})")  # fmt: skip
        return f"(({right.text} IS NULL AND {left.may_be_null}) OR {found})"

    def _comparison(self, kind: type, a: exp.Expression, b: exp.Expression) -> Filter:
        turned = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
        left, right = self._sides(a, b)
        if not self._is_side(a):
            kind = turned[kind]
        if isinstance(right, Constant):
            return compared(kind, left, right, self._types)
        if kind in (exp.GT, exp.GTE):
            left, right, kind = right, left, turned[kind]
        return ordered(kind, left, right)

    def _like(self, nodes: list[exp.Expression], negated: bool) -> Filter:
        """Returns the filter for LIKE or NOT LIKE.

        Patterns contain no backslashes, so nothing is escaped, and the text before the first
        wildcard is literal.
        """
        value, pattern = nodes
        side = self._side(value)
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            return None
        constant = self._constant(pattern)
        if not side.data_type == constant.data_type == "string":
            return None
        text = str(pattern.this)
        cut = next((i for i, c in enumerate(text) if c in "%_\ufffd"), len(text))
        if cut == len(text):
            return compared(exp.NEQ if negated else exp.EQ, side, constant, self._types)
        if negated and text[cut:] != "%":
            return None
        prefix = Constant(self._bare.of(exp.Literal.string(text[:cut])), "string")
        return starting(side, prefix, negated)

    def _not_null(self, node: exp.Expression) -> Filter:
        """Returns a filter based only on the fact that comparisons with null are never TRUE."""
        if isinstance(node, _COMPARISONS) and is_plain(node):
            with contextlib.suppress(NotUnderstood):
                return self._have_values(*operands(node))
        return None

    def _have_values(self, *values: exp.Expression) -> Filter:
        """Returns a filter that skips files in which one of the values is null in every row."""
        found: Filter = None
        for parts in dict.fromkeys(p for value in values for p in needed_columns(value)):
            with contextlib.suppress(NotUnderstood):
                found = both(found, f"v{self._find(parts).number}")
        return found

    def _of_constant_file(self, node: exp.Expression, negated: bool) -> Filter:
        """Returns the filter for a predicate that no rule covers.

        The filter evaluates the predicate for files whose rows all have the same values: the bounds
        of each column are equal, and there is no null, NaN or floating-point zero. It keeps all
        other files.
        """
        named: set[int] = set()

        def lower_bound(parts: tuple[str, ...]) -> str:
            number = self._find(parts).number
            named.add(number)
            return f"m{number}"

        try:
            text = Text(lower_bound).of(node)
        except NotUnderstood:
            return None
        if not named:
            return None
        one = " AND ".join(
            f"(b{n} AND NOT u{n} AND NOT q{n} AND m{n} = x{n} AND w{n})" for n in sorted(named)
        )
        answer = f"coalesce(CAST({'NOT ' if negated else ''}{text} AS BOOLEAN), false)"
        return f"(CASE WHEN coalesce({one}, false) THEN {answer} ELSE true END)"

    def _sides(self, a: exp.Expression, b: exp.Expression) -> tuple[Side, Side | Constant]:
        """Returns both operands of a comparison. If one of them is constant, it comes second."""
        if not self._is_side(a):
            return self._side(b), self._constant(a)
        return self._side(a), self._side(b) if self._is_side(b) else self._constant(b)

    def _is_side(self, node: exp.Expression) -> bool:
        return node.find(exp.Column) is not None

    def _side(self, node: exp.Expression) -> Side:
        return monotonic_functions.side(node, self._find, self._types)

    def _constant(self, node: exp.Expression) -> Constant:
        text = self._bare.of(node)
        return Constant(text, self._types.of(text))

    @staticmethod
    def _no_column(parts: tuple[str, ...]) -> str:
        raise NotUnderstood(f"{'.'.join(parts)} is not a constant")


def _combined(combine: Callable[[Filter, Filter], Filter], filters: list[Filter]) -> Filter:
    """Combines filters pairwise, so that the parentheses in the result are not nested deeply."""
    while len(filters) > 1:
        pairs = zip(filters[::2], filters[1::2], strict=False)
        filters = [combine(*pair) for pair in pairs] + filters[len(filters) // 2 * 2 :]
    return filters[0]
