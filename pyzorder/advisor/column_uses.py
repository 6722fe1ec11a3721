"""Classifies how predicates use columns: equality, range, list, prefix or other."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp, parse_one

RANGES = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.In, exp.StartsWith, exp.Like, *RANGES)


def uses_of(node: exp.Expression) -> Iterator[tuple[str, str]]:
    """Yields each column in a predicate, as SQL, and how the predicate uses it.

    The use is `equality`, `in`, `range`, `prefix` or `other`.
    """
    if isinstance(node, (exp.And, exp.Or, exp.Paren)):
        for child in node.iter_expressions():
            yield from uses_of(child)
        return
    kind = "other"
    if not isinstance(node, COMPARISONS) or not is_direct(node):
        pass
    elif isinstance(node, (exp.EQ, exp.NullSafeEQ)):
        kind = "equality"
    elif isinstance(node, exp.In):
        kind = "in"
    elif isinstance(node, RANGES):
        kind = "range"
    elif isinstance(node, exp.StartsWith):
        kind = "prefix"
    elif isinstance(node, exp.Like):
        pattern = node.expression
        has_prefix = isinstance(pattern, exp.Literal) and pattern.name[:1] not in ("%", "_", "")
        kind = "prefix" if has_prefix else "other"
    for name in dict.fromkeys(map(column_name, tops(node))):
        yield name, kind


def tops(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yields the columns and struct fields in an expression. Fields are yielded as whole paths."""
    if isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and is_path(node)):
        yield node
    else:
        for child in node.iter_expressions():
            yield from tops(child)


def is_direct(node: exp.Expression) -> bool:
    """Whether one side of a comparison is a column or struct field, possibly in a cast."""
    sides = [node.this, *([node.expression] if isinstance(node, exp.Binary) else [])]
    return any(is_path(side.unnest()) for side in map(uncast, sides))


def uncast(node: exp.Expression) -> exp.Expression:
    """Removes a cast around an expression."""
    return node.this if isinstance(node, exp.Cast) else node


def is_path(node: exp.Expression) -> bool:
    """Whether an expression is a column or a struct field."""
    while isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
        node = node.this
    return isinstance(node, exp.Column)


def columns_of(sql: str) -> list[str]:
    """Returns the columns in an SQL expression."""
    return [column_name(node) for node in tops(parse_one(sql, dialect="spark"))]


def column_name(node: exp.Expression) -> str:
    """Returns the name of a column or field.

    Its parts are joined by dots and quoted if necessary.
    """
    parts: list[str] = []
    while isinstance(node, exp.Dot):
        parts.append(node.expression.name)
        node = node.this
    parts.append(node.name)
    quoted = ("`" + p.replace("`", "``") + "`" if "." in p or "`" in p else p for p in parts[::-1])
    return ".".join(quoted)
