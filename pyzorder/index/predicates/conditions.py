"""Parses SQL with sqlglot and renders it for Spark, provided that both interpret it in the same
way.

sqlglot replaces many functions with its own equivalents, and parses some operators differently from
Spark. Function calls are therefore kept verbatim (`Verbatim`), and `Text` supports only a short
list of nodes that mean the same in Spark. It raises NotUnderstood for all others.

Spark parses `a = b IS NULL` as `(a = b) IS NULL`. The same applies to IN, LIKE and BETWEEN. sqlglot
may group the operands differently. A predicate that is an operand must therefore be in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError


class NotUnderstood(Exception):
    """A part of a query is not supported, and must not be used to skip files.

    The message is a clause that gives the reason.
    """


class Verbatim(Spark):
    """Spark's dialect, except that function calls are kept verbatim."""

    class Parser(Spark.Parser):
        STRICT_CAST = True
        FUNCTIONS: dict[str, Any] = {}
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}
        NO_PAREN_FUNCTION_PARSERS = {
            name: parser
            for name, parser in Spark.Parser.NO_PAREN_FUNCTION_PARSERS.items()
            if name == "CASE"
        }
        FUNCTION_PARSERS = {
            name: parser
            for name, parser in Spark.Parser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST")
        }


#: Text that sqlglot may read differently from Spark: escapes, double quotes and variables in
#: strings, CHAR and VARCHAR (sqlglot drops these names), and pipes (sqlglot merges their steps into
#: one SELECT).
_OBSCURE = re.compile(r"""[\\"]|\$\{|\b(var)?char\s*\(|\|>""", re.IGNORECASE)

_TYPES = {
    "BOOLEAN": "BOOLEAN", "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INT",
    "BIGINT": "BIGINT", "FLOAT": "FLOAT", "DOUBLE": "DOUBLE", "DATE": "DATE",
    "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMPLTZ": "TIMESTAMP_LTZ", "TIMESTAMPNTZ": "TIMESTAMP_NTZ",
    "TEXT": "STRING", "BINARY": "BINARY", "DECIMAL": "DECIMAL",
}  # fmt: skip

_BINARY: dict[type[exp.Expression], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.And: "AND", exp.Or: "OR", exp.Add: "+", exp.Sub: "-", exp.Mul: "*",
    exp.Div: "/", exp.Mod: "%", exp.Like: "LIKE", exp.ILike: "ILIKE",
}  # fmt: skip

_CONNECTORS = (exp.And, exp.Or)

#: Nodes that must be in parentheses when they are operands.
_PREDICATES = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.And, exp.Or, exp.Not,
    exp.Like, exp.ILike, exp.In, exp.Between, exp.Is,
)  # fmt: skip

#: Spark functions that are cheap and deterministic within a session. At run time, the time zone is
#: the only setting that affects them.
FUNCTIONS = {
    "abs", "add_months", "bigint", "binary", "boolean", "ceil", "char_length", "coalesce",
    "concat", "contains", "date", "date_add", "date_from_unix_date", "date_sub", "date_trunc",
    "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "decimal", "double", "endswith",
    "float", "floor", "greatest", "hex", "hour", "if", "ifnull", "int", "isnan", "isnotnull",
    "isnull", "last_day", "least", "left", "length", "lower", "make_date", "make_dt_interval",
    "make_ym_interval", "minute", "month", "nullif", "nvl", "quarter", "reverse", "right",
    "second", "smallint", "startswith", "string", "substr", "substring", "timestamp",
    "timestamp_micros", "timestamp_millis", "timestamp_seconds", "tinyint", "trim", "trunc",
    "unix_date", "unix_micros", "upper", "weekofyear", "year",
}  # fmt: skip


#: The functions in `FUNCTIONS` that may return a non-null value even if an argument is null.
_TAKE_NULL = {
    "coalesce", "greatest", "if", "ifnull", "isnan", "isnotnull", "isnull", "least", "nullif",
    "nvl",
}  # fmt: skip


def parse(text: str, only_names: bool = False) -> exp.Expression:
    """Parses a condition or statement.

    Args:
        only_names: whether the caller uses only the names in the result. If so, ambiguous text is
            accepted.

    Raises:
        NotUnderstood: the text cannot be parsed, or sqlglot may read it differently from Spark.
    """
    if not only_names and _OBSCURE.search(text):
        raise NotUnderstood("the text contains a backslash, a double quote, ${, |> or CHAR")
    try:
        return parse_one(text, dialect=Verbatim)
    except (SqlglotError, RecursionError):
        raise NotUnderstood("sqlglot cannot parse the text") from None


def conjuncts(condition: exp.Expression | None) -> Iterator[exp.Expression]:
    """Yields the operands of a condition's top-level AND, from left to right."""
    return chain(condition, exp.And)


def chain(
    condition: exp.Expression | None, connector: type[exp.Connector]
) -> Iterator[exp.Expression]:
    """Yields the operands of a condition's top-level connector, from left to right."""
    left = [condition]  # a stack, because nesting may exceed Python's recursion limit
    while left:
        node = left.pop()
        if isinstance(node, exp.Paren):
            left.append(node.this)
        elif isinstance(node, connector):
            left += (node.expression, node.this)
        elif node is not None:
            yield node


def unwrapped(node: exp.Expression) -> exp.Expression:
    """Removes parentheses around an expression."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def parts_of(column: exp.Column) -> tuple[str, ...]:
    """Returns the parts of a column's name.

    Raises:
        NotUnderstood: the column is a star.
    """
    parts = column.parts
    if not all(isinstance(part, exp.Identifier) for part in parts):
        raise NotUnderstood("a star is used instead of a column")
    return tuple(part.name for part in parts)


def call_of(node: exp.Expression) -> tuple[str, list[exp.Expression]] | None:
    """Returns the lower-case name and the arguments of a call to one of `FUNCTIONS`, or None."""
    if isinstance(node, exp.Anonymous) and _only(node, "this", "expressions"):
        name = str(node.this).lower()
        return (name, node.expressions) if name in FUNCTIONS else None
    return None


def is_plain(node: exp.Expression) -> bool:
    """True if none of a node's arguments modifies the usual meaning of its class."""
    return _only(node, "this", "expression", "expressions", "typed", "safe", "low", "high", "to")


def is_negated(node: exp.Expression) -> bool:
    """Whether sqlglot stores a NOT in the node itself, as it may do for NOT LIKE and NOT IN."""
    return bool(node.args.get("negate"))


def affirmed(node: exp.Expression) -> exp.Expression:
    """Returns the predicate without its NOT, if the NOT is stored in the node itself."""
    if is_negated(node):
        node = node.copy()
        node.set("negate", None)
    return node


def operands(node: exp.Expression) -> list[exp.Expression]:
    """Returns the operands of a predicate.

    Raises:
        NotUnderstood: an operand is a predicate that is not in parentheses.
    """
    names = ("low", "high") if isinstance(node, exp.Between) else ("expression", "expressions")
    found = [node.this]
    for name in names:
        value = node.args.get(name)
        found += value if isinstance(value, list) else [value] if value is not None else []
    if any(isinstance(operand, _PREDICATES) for operand in found):
        raise NotUnderstood("an operand is a predicate without parentheses")
    # Spark parses `a <=> b < c` as `(a <=> b) < c`, but sqlglot adds parentheses around `b < c`.
    if isinstance(node, exp.NullSafeEQ) and isinstance(unwrapped(node.expression), _PREDICATES):
        raise NotUnderstood("the right operand of <=> may be a predicate without parentheses")
    return found


def is_beyond_bigint(node: exp.Expression) -> bool:
    """Whether an expression is a numeric literal that does not fit into BIGINT."""
    node = unwrapped(node)
    if isinstance(node, exp.Neg):
        return is_beyond_bigint(node.this)
    if isinstance(node, exp.Cast) and node.to.is_type("decimal"):
        node = node.this
    try:
        return isinstance(node, exp.Literal) and not abs(Decimal(str(node.this))) < 2**63
    except InvalidOperation:
        return False


def needed_columns(node: exp.Expression) -> Iterator[tuple[str, ...]]:
    """Yields every column whose nulls make the expression NULL."""
    call = call_of(node)
    if isinstance(node, exp.Column):
        yield parts_of(node)
    elif isinstance(node, (exp.Paren, exp.Neg)) or type(node) is exp.Cast:
        yield from needed_columns(node.this)
    elif isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)):
        yield from needed_columns(node.this)
        yield from needed_columns(node.expression)
    elif call is not None and call[0] not in _TAKE_NULL:
        for argument in call[1]:
            yield from needed_columns(argument)


class Text:
    """Renders expressions as SQL for Spark."""

    def __init__(self, column: Callable[[tuple[str, ...]], str]) -> None:
        """`column` returns the SQL for a column's name, given in parts. It raises NotUnderstood if
        the column cannot be used."""
        self._column = column

    def of(self, node: exp.Expression) -> str:
        """Returns the SQL of an expression. Adds parentheses where they may be needed.

        Raises:
            NotUnderstood: a part of the expression is not supported.
        """
        if isinstance(node, exp.Paren) and _only(node, "this"):
            return f"({self.of(node.this)})"
        if isinstance(node, exp.Column):
            return self._column(parts_of(node))
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return self._cast(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        call = call_of(node)
        if call is not None:
            return f"{call[0]}({', '.join(self.of(a) for a in call[1])})"
        return self._literal(node) or self._operator(node)

    def _operator(self, node: exp.Expression) -> str:
        negation = "NOT " if is_negated(node) else ""
        if isinstance(node, exp.Not) and _only(node, "this"):
            return f"(NOT {self.of(node.this)})"
        if isinstance(node, exp.Neg) and _only(node, "this"):
            return f"(- {self.of(*operands(node))})"
        kind = type(node)
        if kind in _BINARY and _only(node, "this", "expression", "typed", "safe", "negate"):
            sides = [node.this, node.expression] if kind in _CONNECTORS else operands(node)
            left, right = (self.of(side) for side in sides)
            return f"({left} {negation}{_BINARY[kind]} {right})"
        if isinstance(node, exp.In) and _only(node, "this", "expressions", "negate"):
            value, *listed = [self.of(side) for side in operands(node)]
            return f"({value} {negation}IN ({', '.join(listed)}))"
        if isinstance(node, exp.Between) and _only(node, "this", "low", "high", "negate"):
            value, low, high = (self.of(side) for side in operands(node))
            return f"({value} {negation}BETWEEN {low} AND {high})"
        is_plain_is = isinstance(node, exp.Is) and _only(node, "this", "expression", "negate")
        if is_plain_is and isinstance(node.expression, (exp.Null, exp.Boolean)):
            return f"({self.of(operands(node)[0])} IS {negation}{self.of(node.expression)})"
        raise NotUnderstood(f"the operator {node.key} is not supported")

    def _literal(self, node: exp.Expression) -> str | None:
        if isinstance(node, exp.Literal):
            if not node.is_string:
                return str(node.this)
            text = str(node.this)
            if not text.isprintable() or "'" in text:
                raise NotUnderstood("a string contains special characters")
            return f"'{text}'"
        if isinstance(node, exp.HexString) and _only(node, "this"):
            return f"X'{node.this}'"
        if isinstance(node, exp.Boolean):
            return str(bool(node.this)).upper()
        return "NULL" if isinstance(node, exp.Null) else None

    def _cast(self, node: exp.Cast) -> str:
        if not _only(node, "this", "to"):
            raise NotUnderstood("a cast has options that are not supported")
        return f"CAST({self.of(node.this)} AS {type_text(node.args['to'])})"

    def _case(self, node: exp.Case) -> str:
        if not _only(node, "this", "ifs", "default"):
            raise NotUnderstood("this form of CASE is not supported")
        value = f" {self.of(node.this)}" if node.this is not None else ""
        branches = "".join(
            f" WHEN {self.of(i.this)} THEN {self.of(i.args['true'])}" for i in node.args["ifs"]
        )
        default = node.args.get("default")
        otherwise = f" ELSE {self.of(default)}" if default is not None else ""
        return f"CASE{value}{branches}{otherwise} END"


def type_text(data_type: exp.Expression) -> str:
    """Returns Spark's name for an atomic type.

    Raises:
        NotUnderstood: the type is not supported.
    """
    kind = getattr(data_type.this, "name", "")
    parameters = data_type.expressions
    if kind not in _TYPES or not _only(data_type, "this", "expressions", "nested"):
        raise NotUnderstood("casts to this type are not supported")
    if not parameters:
        return _TYPES[kind]
    if kind != "DECIMAL":
        raise NotUnderstood("casts to this type are not supported")
    return f"DECIMAL({', '.join(str(int(p.this.name)) for p in parameters)})"


def _only(node: exp.Expression, *names: str) -> bool:
    return all(name in names or value in (None, False, []) for name, value in node.args.items())
