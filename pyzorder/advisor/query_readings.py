"""Determines how a query reads a table. Follows aliases, subqueries and joins.

Filters are pushed down to the table as Spark's optimizer would push them. Join keys are pushed down
as pyzorder would push them when the query runs. Filters and keys that do not reach the table are
counted as left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from pyzorder.advisor.column_uses import uses_of
from pyzorder.advisor.query_scopes import DIALECT, Scope, Source, has_query, top_queries
from pyzorder.advisor.workload import (
    KEY,
    KeyJoin,
    NotUnderstood,
    Predicate,
    Reading,
    TableNames,
    Workload,
)

SOURCE, PATH = "source", "path"
OPTIONAL = "filters or join keys on the optional side of an outer join"


@dataclass
class WorkloadFilters:
    """The predicates and joins collected so far for a reading."""

    predicates: list[Predicate] = field(default_factory=list)
    joins: list[KeyJoin] = field(default_factory=list)


class QueryReadings:
    """Pushes the conditions of a query down to the sources that refer to the table."""

    def __init__(self, table: TableNames, workload: Workload, scopes: list[Scope]) -> None:
        self._table = table
        self._workload = workload
        self._scopes = [scope for top in scopes for scope in top.walk()]
        self._filters: dict[int, WorkloadFilters] = {}

    def readings(self) -> list[Reading]:
        """Returns one reading for each source that refers to the table."""
        for scope in self._scopes:
            for source in scope.sources.values():
                if source.table is not None and self._table.match(source.table):
                    self._filters[id(source)] = WorkloadFilters()
        for scope in self._scopes if self._filters else []:
            for condition, join in scope.conditions():
                self._condition(scope, condition, join)
        return [Reading(tuple(a.predicates), tuple(a.joins)) for a in self._filters.values()]

    def _condition(self, scope: Scope, condition: exp.Expression, join: exp.Join | None) -> None:
        if has_query(condition):
            self._subquery(scope, condition, join)
            return
        bound = bind(condition, scope)
        if bound is None:
            if any(self._leads(source) for source in scope.sources.values()):
                self._leave_out("filters with unknown names", condition)
            return
        names = sources_in(bound)
        if len(names) == 1:
            (name,) = names
            if not applies(join, scope.sources[name]):
                return
            if join is None and scope.is_optional(name) and not rejects_null(bound):
                self._leave_out(OPTIONAL, condition, name, scope)
            else:
                self._push(scope, bound)
        elif len(names) == 2 and isinstance(bound, exp.EQ) and is_strict(join):
            left, right = sources_in(bound.left), sources_in(bound.right)
            if len(left) == len(right) == 1:
                self._join(scope, bound.left, bound.right, condition, join)
                self._join(scope, bound.right, bound.left, condition, join)
        elif names and not isinstance(bound, exp.EQ):
            for name in names:
                self._leave_out("filters on columns of several tables", condition, name, scope)

    def _push(self, scope: Scope, bound: exp.Expression) -> None:
        """Pushes a predicate on a single source down to the tables that the source reads."""
        (name,) = sources_in(bound)
        source = scope.sources[name]
        if id(source) in self._filters:
            self._filters[id(source)].predicates.append(self._predicate(bound, source))
        for i in range(len(source.branches)):
            lowered = self._lower(scope, source, bound, i)
            if lowered is not None and sources_in(lowered):
                if len(sources_in(lowered)) == 1:
                    self._push(source.branches[i], lowered)
                else:
                    self._leave_out("filters on columns of several tables", bound, name, scope)

    def _lower(
        self, scope: Scope, source: Source, bound: exp.Expression, branch: int
    ) -> exp.Expression | None:
        """Translates a condition on a subquery into a condition inside the subquery. Returns None
        if the condition must stay outside."""
        inner = source.branches[branch]
        select = inner.select
        name = next(n for n, s in scope.sources.items() if s is source)
        blocked = (
            not source.whole
            or any(select.args.get(key) for key in ("limit", "offset", "qualify", "laterals"))
            or any(item.find(exp.Window) is not None for item in select.selects)
        )
        if blocked:
            self._leave_out(
                "filters on a subquery with LIMIT, a window function, EXCEPT or similar",
                bound, name, scope,
            )  # fmt: skip
            return None
        outer, projections = scope.columns(name), inner.projections()
        if outer is None or projections is None or len(outer) > len(projections):
            self._leave_out("filters with unknown names", bound, name, scope)
            return None
        places = {column.lower(): i for i, column in enumerate(outer)}

        def replaced(node: exp.Expression) -> exp.Expression:
            if not isinstance(node, exp.Column):
                return node
            first, *fields = node.meta[PATH]
            item = bind(projections[places[first.lower()]][1], inner)
            if item is None or item.find(exp.AggFunc, exp.Explode, exp.Query) is not None:
                raise NotUnderstood
            if fields:
                return exp.Dot.build([item, *map(exp.to_identifier, fields)])
            return item if isinstance(item, exp.Column) else exp.paren(item)

        try:
            return bound.transform(replaced)
        except (NotUnderstood, KeyError):
            self._leave_out(
                "filters on aggregates or similar columns of a subquery", bound, name, scope
            )
            return None

    def _join(
        self,
        scope: Scope,
        ours: exp.Expression,
        theirs: exp.Expression,
        condition: exp.Expression,
        join: exp.Join | None,
    ) -> None:
        (name,), (other,) = sources_in(ours), sources_in(theirs)
        source = scope.sources[name]
        if not self._leads(source) or (is_semi(join) and source.join is join):
            return
        own = [part for part, on in scope.conditions() if self._is_of(scope, part, on, other)]
        for part in own:  # Spark's optimizer infers filters on the key for both sides
            bound = bind(part, scope)
            if bound is not None and isinstance(theirs, exp.Column):
                same = theirs.meta[PATH]
                if all(c.meta[PATH] == same for c in bound.find_all(exp.Column)):
                    self._push(scope, bound.transform(lambda n: ours if is_column(n) else n))
        query = ""
        if own or scope.sources[other].branches:
            query = other_side(scope, other, plain(theirs, other), own)
        self._push_join(scope, ours, query, is_hinted(scope, other))

    def _is_of(self, scope: Scope, part: exp.Expression, on: exp.Join | None, name: str) -> bool:
        """Whether a condition filters only the source with this name.

        The condition may contain uncorrelated subqueries.
        """
        bound = bind(part, scope)
        if bound is None or sources_in(bound) != {name} or not applies(on, scope.sources[name]):
            return False
        return not any(is_correlated(query, scope) for query in top_queries(part))

    def _push_join(self, scope: Scope, ours: exp.Expression, query: str, broadcast: bool) -> None:
        """Pushes the keys of a join down to tables."""
        (name,) = sources_in(ours)
        source = scope.sources[name]
        if id(source) in self._filters:
            column = plain(ours).sql(DIALECT)
            self._filters[id(source)].joins.append(KeyJoin(column, query, broadcast))
        for i, inner in enumerate(source.branches):
            grouped = inner.select.args.get("group") or inner.select.args.get("distinct")
            if grouped or len(source.branches) > 1:
                self._leave_out(
                    "join keys on a subquery with GROUP BY, DISTINCT or UNION", ours, name, scope
                )
                return
            lowered = self._lower(scope, source, ours, i)
            if lowered is not None and len(sources_in(lowered)) == 1:
                (below,) = sources_in(lowered)
                if inner.is_optional(below):
                    self._leave_out(OPTIONAL, ours, name, scope)
                else:
                    self._push_join(inner, lowered, query, broadcast)

    def _subquery(self, scope: Scope, condition: exp.Expression, join: exp.Join | None) -> None:
        """Handles a condition with a subquery.

        IN and EXISTS act as semi joins. The values of other subqueries are known only at run time.
        """
        if is_strict(join):
            if isinstance(condition, exp.In) and condition.args.get("query") is not None:
                query = condition.args["query"]
                bound = bind(condition.this, scope)
                told = bound is not None and len(sources_in(bound)) == 1
                if told and not is_correlated(query, scope):
                    inner = query.unnest().copy()
                    text = f"SELECT q.{KEY} FROM ({inner.sql(DIALECT)}) AS q({KEY})"
                    self._push_join(scope, bound, text, False)
                    return
            elif isinstance(condition, exp.Exists) and self._exists(scope, condition.this):
                return
        if any(self._leads(source) for source in scope.sources.values()):
            self._leave_out("filters with a subquery other than IN or EXISTS", condition)

    def _exists(self, scope: Scope, query: exp.Expression) -> bool:
        """Handles EXISTS (SELECT … WHERE inner = outer AND …) as a join on the outer columns.

        Returns False if the subquery does not have this form.
        """
        inner = next((s for s in scope.subqueries if s.select == query.unnest()), None)
        if inner is None or inner.select.args.get("group"):
            return False
        links, own = [], []
        for part, on in inner.conditions():
            if bind(part, inner) is not None and not has_query(part) and on is None:
                own.append(part)
            elif isinstance(part, exp.EQ) and on is None:
                links += [
                    (bind(outer, scope), theirs)
                    for outer, theirs in ((part.left, part.right), (part.right, part.left))
                    if bind(theirs, inner) is not None and bind(outer, inner) is None
                ]
            else:
                return False
        if len(inner.sources) != 1 or not links:
            return False
        (name,) = inner.sources
        for outer, theirs in links:
            if outer is None or len(sources_in(outer)) != 1:
                return False
            text = other_side(inner, name, theirs.copy(), own) if own else ""
            self._push_join(scope, outer, text, False)
        return True

    def _predicate(self, bound: exp.Expression, source: Source) -> Predicate:
        named = plain(bound)
        return Predicate(named.sql(DIALECT), tuple(uses_of(named)))

    def _leads(self, source: Source) -> bool:
        """Whether the source refers to the table, or is a query that reads the table."""
        if id(source) in self._filters:
            return True
        return any(
            self._leads(inner) for branch in source.branches for inner in branch.sources.values()
        )

    def _leave_out(
        self,
        reason: str,
        condition: exp.Expression,
        name: str | None = None,
        scope: Scope | None = None,
    ) -> None:
        if scope is None or name is None or self._leads(scope.sources[name]):
            self._workload.leave_out(reason, condition.sql(DIALECT))


def bind(node: exp.Expression, scope: Scope) -> exp.Expression | None:
    """Returns a copy of an expression in which each column is annotated with its source.

    Columns in subqueries are not annotated. Returns None if the source of a column is unknown.
    """
    copy = node.copy()
    for column in list(own_columns(copy)):
        found = scope.resolve(column)
        if found is None:
            return None
        column.meta[SOURCE], column.meta[PATH] = found
    return copy


def own_columns(node: exp.Expression) -> Iterator[exp.Column]:
    """Yields the columns in an expression, except those in subqueries."""
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, exp.Query):
        for child in node.iter_expressions():
            yield from own_columns(child)


def is_column(node: exp.Expression) -> bool:
    """Whether an expression is a column."""
    return isinstance(node, exp.Column)


def sources_in(bound: exp.Expression) -> set[str]:
    """Returns the names of the sources whose columns occur in an expression returned by `bind`."""
    return {column.meta[SOURCE] for column in own_columns(bound)}


def plain(bound: exp.Expression, qualifier: str | None = None) -> exp.Expression:
    """Returns a copy of an expression returned by `bind`, naming each column by its path.

    If `qualifier` is given, it precedes each path.
    """

    def named(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and PATH in node.meta:
            names = [*([qualifier] if qualifier else []), *node.meta[PATH]]
            first, *rest = (exp.to_identifier(name, quoted=True) for name in names)
            column = exp.Column(this=first)
            return exp.Dot.build([column, *rest]) if rest else column
        return node

    return bound.copy().transform(named)


def applies(join: exp.Join | None, source: Source) -> bool:
    """Whether a condition in a join's ON, or in WHERE if `join` is None, filters the source."""
    side = join.side.upper() if join is not None else ""
    if join is None or (side == "" and join.kind.upper() != "ANTI") or is_semi(join):
        return True
    own = source.join is join
    return own if side == "LEFT" or join.kind.upper() == "ANTI" else side == "RIGHT" and not own


def is_semi(join: exp.Join | None) -> bool:
    """Whether a join is a semi join."""
    return join is not None and join.kind.upper() == "SEMI"


def is_strict(join: exp.Join | None) -> bool:
    """Whether rows without a match are dropped. True for WHERE, inner joins and semi joins."""
    return join is None or is_semi(join) or (not join.side and join.kind.upper() != "ANTI")


def rejects_null(bound: exp.Expression) -> bool:
    """Whether a row of nulls fails the condition. This heuristic is good enough for advice."""
    return bound.find(exp.Is, exp.Coalesce, exp.Case, exp.If, exp.NullSafeEQ) is None


def is_correlated(query: exp.Expression, scope: Scope) -> bool:
    """Whether a subquery refers to sources of the enclosing query."""
    inner = {t.alias_or_name.lower() for t in query.find_all(exp.Table, exp.Subquery)}
    return any(
        column.table and column.table.lower() in scope.sources and column.table.lower() not in inner
        for column in query.find_all(exp.Column)
    )


def is_hinted(scope: Scope, name: str) -> bool:
    """Whether a hint in the query asks Spark to broadcast the source."""
    hint = scope.select.args.get("hint")
    broadcast = ("BROADCAST", "BROADCASTJOIN", "MAPJOIN")
    return hint is not None and any(
        item.name.upper() in broadcast
        and name in (table.name.lower() for table in item.expressions)
        for item in hint.expressions
    )


def other_side(
    scope: Scope, name: str, key: exp.Expression, conditions: list[exp.Expression]
) -> str:
    """Returns a query that selects the join key and every column that is used from the other side.

    The size of the query's result determines whether Spark broadcasts that side.
    """
    used: list[exp.Expression] = []
    for column in scope.select.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        found = scope.resolve(column)
        if found is not None and found[0] == name:
            item = exp.column(found[1][0], name, quoted=True)
            if item not in used:
                used.append(item)
    if any(isinstance(item, exp.Star) for item in scope.select.selects):
        used = [exp.Column(this=exp.Star(), table=exp.to_identifier(name, quoted=True))]
    select = exp.select(exp.alias_(key.copy(), KEY), *used)
    select = select.from_(scope.sources[name].node.copy())
    return select.where(*(condition.copy() for condition in conditions)).sql(DIALECT)
