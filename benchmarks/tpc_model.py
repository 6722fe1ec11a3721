"""Predicts which files a query needs if each join reduces its tables to the matching rows.

The model is independent of Spark and of the index. It inlines the query's CTEs, moves predicates
into subqueries, and then runs the FROM and WHERE clauses of each SELECT in DuckDB. For each table,
the values in the remaining rows are compared with the bounds of the table's files. A SELECT also
passes the values of its columns down to the subqueries in which these columns are keys. A join that
only removes matching rows, such as NOT IN, reduces nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from threading import Timer
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
from sqlglot import exp, parse_one
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.pushdown_predicates import pushdown_predicates
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, build_scope

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class FileBounds:
    """The minimum and maximum of each column in each file of a table. If a column is null in all
    rows of a file, its stored minimum is greater than its maximum, so no key matches the file."""

    files: int
    columns: Mapping[str, tuple[Array, Array]]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> FileBounds:
        """The bounds of files. Each row contains the minimum and maximum of each column in one
        file."""
        bounds: dict[str, tuple[Array, Array]] = {}
        for at, column in enumerate(columns):
            known = [row for row in rows if row[2 * at] is not None]
            if known:
                no_key = max(row[2 * at + 1] for row in known), min(row[2 * at] for row in known)
                low, high = zip(
                    *(no_key if row[2 * at] is None else row[2 * at : 2 * at + 2] for row in rows),
                    strict=True,
                )
                bounds[column] = np.array(low), np.array(high)
        return cls(len(rows), bounds)

    def matching(self, keys: Mapping[str, Array]) -> Array:
        """Returns the files whose bounds contain, for every column, at least one of its keys."""
        result = np.ones(self.files, dtype=bool)
        for column, values in keys.items():
            if column in self.columns:
                low, high = self.columns[column]
                ordered = np.sort(values)
                result &= np.searchsorted(ordered, low) < np.searchsorted(ordered, high, "right")
        return result


class Model:
    """Predicts how many files of the tables in `bounds` a query needs. The connection must contain
    tables or views with the same names."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, bounds: Mapping[str, FileBounds]
    ) -> None:
        self._connection = connection
        connection.execute("SET memory_limit = '4GB'")
        connection.execute("SET max_temp_directory_size = '2GB'")
        self._bounds = bounds
        self._numbers = count()
        self._schema: dict[str, dict[str, str]] = {}
        for table, column, data_type in connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
        ).fetchall():
            self._schema.setdefault(table, {})[column] = data_type

    def files(self, query: str, seconds: float = 60) -> dict[str, list[int]]:
        """Returns the number of files for each occurrence of each table in a query.

        Raises:
            duckdb.Error: the joins, which run without the aggregates between them, exceed the
                memory or time limit.
        """
        limit = Timer(seconds, self._connection.interrupt)
        limit.start()
        try:
            return self._files(query)
        finally:
            limit.cancel()

    def _files(self, query: str) -> dict[str, list[int]]:
        tree = normalize_identifiers(parse_one(query, dialect="duckdb"), dialect="duckdb")
        tree = qualify(inlined(tree), dialect="duckdb", schema=self._schema, quote_identifiers=True)
        root = build_scope(pushdown_predicates(tree, dialect="duckdb"))
        found: dict[str, list[int]] = {}
        for table, files in self._visited(root, {}):
            found.setdefault(table, []).append(files)
        return found

    def _visited(self, scope: Scope, wanted: Mapping[int, str]) -> Iterator[tuple[str, int]]:
        """Yields the number of files for each table in a scope.

        Args:
            wanted: maps the position of each result column that the enclosing query restricts to
                the name of the table that contains the column's allowed values.
        """
        if isinstance(scope.expression, exp.SetOperation):
            for part in scope.set_operation_scopes:
                yield from self._visited(part, wanted)
            return
        rows = remaining_rows(scope)
        for position, keys in wanted.items():
            column = passed_through(scope.expression, position)
            if column is not None:
                rows = rows.where(is_in(column, keys))
        conditions = [part for part in (rows.args.get("where"), *joins_of(rows)) if part]
        used = {
            (column.table, column.name)
            for part in conditions
            for column in part.find_all(exp.Column)
        }
        for alias, source in scope.sources.items():
            columns = sorted(name for table, name in used if table == alias)
            if isinstance(source, exp.Table):
                if source.name in self._bounds:
                    bounds = self._bounds[source.name]
                    known = [name for name in columns if name in bounds.columns]
                    keys = self._distinct(rows, alias, known)
                    yield source.name, int(bounds.matching(keys).sum())
            elif source in scope.derived_table_scopes:
                names = source.expression.named_selects
                yield from self._visited(
                    source,
                    {names.index(name): self._stored(rows, alias, name) for name in columns},
                )
        for inner in scope.subquery_scopes:
            yield from self._visited_subquery(rows, inner)

    def _visited_subquery(self, rows: exp.Select, inner: Scope) -> Iterator[tuple[str, int]]:
        """Yields the number of files for each table in a subquery that is part of an expression.
        The enclosing query passes keys to the subquery through IN, and through equalities between
        columns of the two queries."""
        original = inner.expression
        around = without(rows, original)
        wanted: dict[int, str] = {}
        parent = original.parent.parent if isinstance(original.parent, exp.Subquery) else None
        parent = parent if isinstance(parent, exp.In) else original.parent
        if isinstance(parent, exp.In) and isinstance(parent.this, exp.Column):
            wanted[0] = self._stored(around, parent.this.table, parent.this.name)
        if isinstance(original, exp.Select) and original.args.get("where"):
            own = {source.lower() for source in inner.sources}
            for part in conjuncts(original.args["where"].this):
                if isinstance(part, exp.EQ) and all(
                    isinstance(side, exp.Column) for side in (part.left, part.right)
                ):
                    sides = sorted((part.left, part.right), key=lambda c: c.table.lower() in own)
                    outside, inside = sides
                    if inside.table.lower() in own and outside.table.lower() not in own:
                        keys = self._stored(around, outside.table, outside.name)
                        original.where(is_in(inside, keys), copy=False)
        yield from self._visited(inner, wanted)

    def _distinct(self, rows: exp.Select, alias: str, columns: Sequence[str]) -> dict[str, Array]:
        """Returns the distinct non-null values of the given columns in the remaining rows."""
        lists = [f'list(DISTINCT "{alias}"."{name}")' for name in columns]
        query = rows.select(*(lists or ["1"]), append=False, dialect="duckdb")
        row = self._connection.execute(query.sql("duckdb")).fetchone()
        assert row is not None
        return {
            name: np.array([value for value in values or () if value is not None])
            for name, values in zip(columns, row, strict=False)
        }

    def _stored(self, rows: exp.Select, alias: str, column: str) -> str:
        """Stores the distinct values of a column in the remaining rows as a temporary table."""
        name = f"keys_{next(self._numbers)}"
        query = rows.select(f'"{alias}"."{column}" AS k', append=False, dialect="duckdb").distinct()
        self._connection.execute(f"CREATE TEMP TABLE {name} AS {query.sql('duckdb')}")
        return name


def inlined(tree: exp.Expression) -> exp.Expression:
    """Replaces references to CTEs with the queries of these CTEs."""
    for query in reversed(list(tree.find_all(exp.Query))):
        with_ = query.args.get("with_") or query.args.get("with")
        if with_ is None:
            continue
        with_.pop()
        known: dict[str, exp.Expression] = {}
        for cte in with_.expressions:
            known[cte.alias] = replaced(cte.this, known)
        replaced(query, known)
    return tree


def replaced(query: exp.Expression, known: Mapping[str, exp.Expression]) -> exp.Expression:
    for table in list(query.find_all(exp.Table)):
        if not table.db and table.name in known:
            alias = table.alias or table.name
            table.replace(known[table.name].copy().subquery(alias))
    return query


def remaining_rows(scope: Scope) -> exp.Select:
    """Returns a SELECT of the rows that remain after the joins and the WHERE clause of a scope.
    Leaves out conditions that refer to enclosing queries, and conditions such as NOT IN, which only
    remove matching rows."""
    select = scope.expression.copy()
    for part in ("group", "having", "order", "limit", "offset", "distinct", "qualify", "windows"):
        select.set(part, None)

    def kept(condition: exp.Expression) -> exp.Expression:
        parts = [
            part
            for part in conjuncts(condition)
            if not is_anti(part) and not refers_outside(part, scope)
        ]
        return exp.and_(*parts, copy=False) if parts else exp.true()

    where = select.args.get("where")
    if where is not None:
        where.set("this", kept(where.this))
    for join in select.args.get("joins") or ():
        if join.args.get("on"):
            join.set("on", kept(join.args["on"]))
    return select


def is_anti(condition: exp.Expression) -> bool:
    return isinstance(condition, exp.Not) and condition.find(exp.Query) is not None


def refers_outside(condition: exp.Expression, scope: Scope) -> bool:
    own = {alias.lower() for alias in scope.sources} | {
        source.alias_or_name.lower() for source in condition.find_all(exp.Table, exp.Subquery)
    }
    return any(column.table.lower() not in own for column in condition.find_all(exp.Column))


def without(rows: exp.Select, subquery: exp.Expression) -> exp.Select:
    """Returns the query `rows` without the conditions that contain the subquery."""
    text, result = subquery.sql("duckdb"), rows.copy()
    where = result.args.get("where")
    if where is not None:
        kept = [part for part in conjuncts(where.this) if text not in part.sql("duckdb")]
        where.set("this", exp.and_(*kept, copy=False) if kept else exp.true())
    return result


def conjuncts(condition: exp.Expression) -> list[exp.Expression]:
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def joins_of(select: exp.Select) -> list[exp.Expression]:
    return [join.args["on"] for join in select.args.get("joins") or () if join.args.get("on")]


def passed_through(select: exp.Select, position: int) -> exp.Column | None:
    """Returns the column whose values appear at this position of the result. Returns None if there
    is no such column, or if restricting its values would change other rows of the result."""
    column = select.selects[position].unalias()
    if not isinstance(column, exp.Column) or select.args.get("limit"):
        return None
    if any(item.find(exp.Window) for item in select.selects):
        return None
    group = select.args.get("group")
    if group is None:
        return None if any(item.find(exp.AggFunc) for item in select.selects) else column
    plain = not any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets"))
    return column if plain and column in group.expressions else None


def is_in(column: exp.Column, keys: str) -> exp.Expression:
    return exp.In(this=column.copy(), query=exp.select("k").from_(keys).subquery())
