"""Reads the workload that sessions have recorded for a table (`zorder_workload`).

Anyone with write access to the table's folder can forge the recorded conditions. They are therefore
parsed, and only comparisons of the table's columns with constants are used. Spark never sees the
recorded text, but SQL that is generated from the parsed condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyspark.sql import Row
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyzorder.advisor.column_uses import is_path, uses_of
from pyzorder.advisor.query_scopes import DIALECT
from pyzorder.advisor.workload import NotUnderstood, Predicate, Reading, TableNames, Workload

COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
CONSTANTS = (exp.Literal, exp.Boolean, exp.Null, exp.HexString)


def read(rows: Iterable[Row], table: TableNames, workload: Workload) -> None:
    """Adds the rows of `zorder_workload` to a workload. The queries of a row are divided among its
    examples."""
    for row in rows:
        examples = list(row.examples) or [""]
        for number, example in enumerate(examples):
            share = row.queries // len(examples) + (number < row.queries % len(examples))
            found = Workload()
            predicates = tuple(_predicates(example, table, found))
            used = {_bare(name) for predicate in predicates for name, _ in predicate.uses}
            if unknown := [key for key in row.join_keys if _bare(key) not in used]:
                found.leave_out("joins whose keys are not recorded", unknown[0])
            found.add([Reading(predicates)])
            workload.merge(found, share)


def _bare(name: str) -> str:
    return name.replace("`", "").lower()


def _predicates(example: str, table: TableNames, workload: Workload) -> Iterator[Predicate]:
    try:
        tree = parse_one(example, dialect=DIALECT) if example else None
    except (SqlglotError, RecursionError):
        workload.leave_out("conditions that sqlglot cannot parse", example)
        return
    for part in _conjuncts(tree):
        try:
            part = part.transform(_with_fields)
            _check(part, {name.lower() for name in table.columns})
            yield Predicate(part.sql(DIALECT), tuple(uses_of(part)))
        except (NotUnderstood, RecursionError) as failure:
            workload.leave_out(f"conditions with {failure or 'deep nesting'}", example)


def _conjuncts(tree: exp.Expression | None) -> Iterator[exp.Expression]:
    pending = [tree] if tree is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, exp.And):
            pending += [node.expression, node.this]
        elif isinstance(node, exp.Paren):
            pending.append(node.this)
        else:
            yield node


def _with_fields(node: exp.Expression) -> exp.Expression:
    """Makes `a.b` a field of the column `a`. sqlglot parses it as the column `b` of a table `a`."""
    if not isinstance(node, exp.Column) or len(node.parts) == 1:
        return node
    first, *fields = (part.copy() for part in node.parts)
    return exp.Dot.build([exp.Column(this=first), *fields])


def _check(node: exp.Expression, columns: set[str]) -> None:
    """Raises NotUnderstood unless the condition only compares columns with constants."""
    if isinstance(node, (exp.And, exp.Or, exp.Not, exp.Paren)):
        for child in node.iter_expressions():
            _check(child, columns)
    elif isinstance(node, exp.In) and not (node.args.get("query") or node.args.get("unnest")):
        _check_operand(node.this, columns)
        for value in node.expressions:
            _check_operand(value, columns)
    elif isinstance(node, (*COMPARISONS, exp.StartsWith, exp.Is)) or _is_prefix(node):
        for child in (node.this, node.expression):
            _check_operand(child, columns)
    else:
        raise NotUnderstood("functions or operators other than comparisons")


def _is_prefix(node: exp.Expression) -> bool:
    """Whether the node is LIKE with a prefix. Other patterns cannot skip files, and matching a
    forged pattern could take very long."""
    pattern = node.expression if isinstance(node, exp.Like) else None
    return isinstance(pattern, exp.Literal) and bool(re.fullmatch(r"[^%_\\]*%", pattern.name))


def _check_operand(node: exp.Expression, columns: set[str]) -> None:
    while isinstance(node, (exp.Paren, exp.Neg, exp.Cast)):
        if isinstance(node, exp.Cast) and node.to.args.get("nested"):
            break
        node = node.this
    if isinstance(node, CONSTANTS):
        return
    if not is_path(node):
        raise NotUnderstood("functions or operators other than comparisons")
    root = node
    while isinstance(root, exp.Dot):
        root = root.this
    if root.name.lower() not in columns:
        raise NotUnderstood("columns that the table does not have")
