"""Predicts which files a query needs if each table gets the join keys of all other tables.

The model is independent of Spark and of the index. It inlines the query's CTEs and moves predicates
into subqueries. For each table in each SELECT, it reduces the other tables by semi-joins with each
other, in DuckDB, and compares their keys with the bounds of the table's files. The values in the
rows that pass the table's own conditions are compared as well. A SELECT also passes keys down to
its subqueries. The right side of an outer join, and a condition such as NOT IN, which only removes
matching rows, provide no keys.
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
    """Predicts which files of the tables in `bounds` a query needs. The connection must contain
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

    def files(self, query: str, seconds: float = 60) -> dict[str, list[Array]]:
        """Returns which files each occurrence of each table in a query needs.

        Raises:
            duckdb.Error: the query's parts exceed the memory or time limit.
        """
        limit = Timer(seconds, self._connection.interrupt)
        limit.start()
        try:
            return self._files(query)
        finally:
            limit.cancel()

    def _files(self, query: str) -> dict[str, list[Array]]:
        tree = normalize_identifiers(parse_one(query, dialect="duckdb"), dialect="duckdb")
        tree = qualify(inlined(tree), dialect="duckdb", schema=self._schema, quote_identifiers=True)
        root = build_scope(pushdown_predicates(tree, dialect="duckdb"))
        found: dict[str, list[Array]] = {}
        for table, files in self._visited(root, {}):
            found.setdefault(table, []).append(files)
        return found

    def _visited(self, scope: Scope, wanted: Mapping[int, str]) -> Iterator[tuple[str, Array]]:
        """Yields the files of each table in a scope.

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
        for alias, source in scope.sources.items():
            keys: dict[str, list[exp.Query]] = {}
            for column, query in (*keys_of_others(rows, alias), *own_values(rows, alias)):
                keys.setdefault(column, []).append(query)
            if isinstance(source, exp.Table):
                if source.name in self._bounds:
                    yield source.name, self._matching(source.name, keys)
            elif source in scope.derived_table_scopes:
                names = source.expression.named_selects
                yield from self._visited(
                    source,
                    {names.index(name): self._stored(queries) for name, queries in keys.items()},
                )
        for inner in scope.subquery_scopes:
            yield from self._visited_subquery(rows, inner)

    def _visited_subquery(self, rows: exp.Select, inner: Scope) -> Iterator[tuple[str, Array]]:
        """Yields the files of each table in a subquery that is part of an expression.
        The enclosing query passes keys to the subquery through IN, and through equalities between
        columns of the two queries."""
        original = inner.expression
        around = without(rows, original)
        wanted: dict[int, str] = {}
        parent = original.parent.parent if isinstance(original.parent, exp.Subquery) else None
        parent = parent if isinstance(parent, exp.In) else original.parent
        if isinstance(parent, exp.In) and isinstance(parent.this, exp.Column):
            wanted[0] = self._stored([select_keys(around, parent.this)])
        if isinstance(original, exp.Select) and original.args.get("where"):
            own = {source.lower() for source in inner.sources}
            for part in conjuncts(original.args["where"].this):
                if isinstance(part, exp.EQ) and all(
                    isinstance(side, exp.Column) for side in (part.left, part.right)
                ):
                    sides = sorted((part.left, part.right), key=lambda c: c.table.lower() in own)
                    outside, inside = sides
                    if inside.table.lower() in own and outside.table.lower() not in own:
                        keys = self._stored([select_keys(around, outside)])
                        original.where(is_in(inside, keys), copy=False)
        yield from self._visited(inner, wanted)

    def _matching(self, table: str, keys: Mapping[str, Sequence[exp.Query]]) -> Array:
        """Returns the files of a table that, for each column, may contain a value that each of its
        queries returns."""
        bounds = self._bounds[table]
        result = np.ones(bounds.files, dtype=bool)
        for name in bounds.columns.keys() & keys.keys():
            for query in keys[name]:
                rows = self._connection.execute(query.sql("duckdb")).fetchall()
                values = np.array([value for (value,) in rows if value is not None])
                result &= bounds.matching({name: values})
        return result

    def _stored(self, queries: Sequence[exp.Query]) -> str:
        """Stores the rows that all of the queries return as a temporary table."""
        name = f"keys_{next(self._numbers)}"
        text = " INTERSECT ".join(f"({query.sql('duckdb')})" for query in queries)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM ({text}) AS t(k)")
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

    optional = {
        join.alias_or_name for join in select.args.get("joins") or () if join.side == "LEFT"
    }

    def kept(condition: exp.Expression) -> exp.Expression:
        parts = [
            part
            for part in conjuncts(condition)
            if not is_anti(part, optional) and not refers_outside(part, scope)
        ]
        return exp.and_(*parts, copy=False) if parts else exp.true()

    where = select.args.get("where")
    if where is not None:
        where.set("this", kept(where.this))
    for join in select.args.get("joins") or ():
        if join.args.get("on"):
            join.set("on", kept(join.args["on"]))
    return select


def is_anti(condition: exp.Expression, optional: set[str]) -> bool:
    """Whether the condition is NOT IN or NOT EXISTS, or requires that a row has no match in one of
    the `optional` tables, which are on the right side of an outer join."""
    if isinstance(condition, exp.Is) and isinstance(condition.this, exp.Column):
        return condition.this.table in optional
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
    both = condition.unnest()
    return (
        [*conjuncts(both.left), *conjuncts(both.right)]
        if isinstance(both, exp.And)
        else [condition]
    )


def where_of(select: exp.Select) -> list[exp.Expression]:
    where = select.args.get("where")
    return [] if where is None else conjuncts(where.this)


def select_keys(rows: exp.Select, key: exp.Expression) -> exp.Select:
    """A SELECT of the distinct values that an expression has in some rows."""
    return rows.select(exp.alias_(key.copy(), "k"), append=False).distinct()


class Joins:
    """The tables of a SELECT, without the right sides of outer joins, and its conditions."""

    def __init__(self, rows: exp.Select, alias: str) -> None:
        first, others = rows.args["from_"].this, rows.args.get("joins") or []
        self._names = {first.alias_or_name, *(join.alias_or_name for join in others)}
        self.tables, self.parts = {first.alias_or_name: first}, where_of(rows)
        for join in others:
            if not join.side or join.alias_or_name == alias:
                self.tables[join.alias_or_name] = join.this
                self.parts += conjuncts(join.args["on"]) if join.args.get("on") else []

    def of(self, condition: exp.Expression) -> set[str]:
        """The tables to which a condition refers, outside its subqueries."""
        return {column.table for column in condition.find_all(exp.Column)} & self._names

    def equal(self, name: str) -> Iterator[tuple[exp.Expression, exp.Expression]]:
        """Yields pairs of an expression over one table and an expression over another table that
        must be equal."""
        for part in self.parts:
            if isinstance(part, exp.EQ):
                for mine, other in ((part.left, part.right), (part.right, part.left)):
                    known = self.of(other) & self.tables.keys() - {name}
                    if self.of(mine) == {name} and len(known) == 1 and known == self.of(other):
                        yield mine, other

    def own(self, name: str) -> list[exp.Expression]:
        return [part.copy() for part in self.parts if self.of(part) == {name}]

    def reduced(self, name: str, without: frozenset[str]) -> exp.Select:
        """The rows of a table that pass its own conditions and match rows of the tables with which
        it is joined, directly or by way of others, except the tables `without`."""
        result = exp.select().from_(self.tables[name].copy()).where(*self.own(name))
        pairs: dict[str, list[tuple[exp.Expression, exp.Expression]]] = {}
        for mine, other in self.equal(name):
            pairs.setdefault(*self.of(other), []).append((mine, other))
        for neighbor in sorted(pairs.keys() - without):
            keys = self.reduced(neighbor, without | {name})
            mine = exp.Tuple(expressions=[m.copy() for m, _ in pairs[neighbor]])
            others = [other.copy() for _, other in pairs[neighbor]]
            keys = keys.select(exp.Tuple(expressions=others))
            result = result.where(exp.In(this=mine, query=keys.subquery()))
        return result


def keys_of_others(rows: exp.Select, alias: str) -> Iterator[tuple[str, exp.Query]]:
    """Yields columns of a table, each with a query that returns all values that the column has in
    the rows of the join. The query does not read the table itself."""
    if any(join.side in ("RIGHT", "FULL") for join in rows.args.get("joins") or ()):
        return
    joins = Joins(rows, alias)
    for mine, other in joins.equal(alias):
        if isinstance(mine, exp.Column):
            (neighbor,) = joins.of(other)
            yield mine.name, select_keys(joins.reduced(neighbor, frozenset({alias})), other)
    for part in joins.own(alias):
        if (
            isinstance(part, exp.In)
            and part.args.get("query")
            and isinstance(part.this, exp.Column)
        ):
            yield part.this.name, part.args["query"].unnest()


def own_values(rows: exp.Select, alias: str) -> Iterator[tuple[str, exp.Query]]:
    """Yields columns of a table, each with a query that returns the values that it has in the rows
    that pass the table's own conditions. Leaves out IS NULL and functions of several columns."""
    joins = Joins(rows, alias)
    if alias in joins.tables:
        for part in joins.own(alias):
            columns = {column.name: column for column in part.find_all(exp.Column)}
            if len(columns) == 1 and not part.find(exp.Query) and not part.find(exp.Null):
                source = exp.select().from_(joins.tables[alias].copy()).where(part)
                yield from ((name, select_keys(source, key)) for name, key in columns.items())


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
