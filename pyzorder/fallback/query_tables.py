"""Finds the tables in a query whose rows are restricted by conditions.

In each SELECT, the relevant rows of a table are restricted by

- WHERE: each conjunct must be TRUE. This does not hold if an outer join may replace the table's
  rows with nulls, because skipping a row could then produce a row of nulls.
- ON: each conjunct must be TRUE. This holds only if rows of the table that do not match cannot
  affect the result.

Columns of the right side of a SEMI or ANTI join are visible only in that join's ON. Conditions on a
subquery in FROM, or on a CTE that is referenced only once, also restrict the tables inside it,
provided that its SELECT returns the columns unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from pyzorder.index.predicates.conditions import NotUnderstood, conjuncts, parse, parts_of

#: The only arguments that a table reference may have if a subquery is to replace it.
_PLAIN_TABLE = {"this", "db", "catalog", "alias"}

#: The only clauses that a SELECT may have if conditions on its rows are to be applied to its
#: sources.
_PLAIN_SELECT = {"expressions", "from", "from_", "joins", "where", "hint", "order", "with", "with_"}


@dataclass
class TableUse:
    """A table in a FROM clause.

    Attributes:
        start: start of the table's name in the query.
        end: end of the name (exclusive).
        text: the name as written.
        qualifier: the lower-case qualifier of its columns.
        has_alias: whether the qualifier is an alias.
        conditions: conditions that are TRUE for all relevant rows.
        others: the qualifiers of the other sources of the SELECT.
        merged: columns of USING. An unqualified reference to one of these columns resolves to the
            first source, not to this table.
    """

    start: int
    end: int
    text: str
    qualifier: str
    has_alias: bool
    conditions: list[exp.Expression] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    merged: set[str] = field(default_factory=set)


def named_tables(query: str) -> set[str]:
    """Returns the names of all tables in a query, spelled as in the query's text.

    The result is empty for statements that are not queries, and for text that cannot be parsed.
    """
    try:
        statement = parse(query, only_names=True)
    except NotUnderstood:
        return set()
    if not isinstance(statement, exp.Query):
        return set()
    common = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
    tables = [t for t in statement.find_all(exp.Table) if isinstance(t.this, exp.Identifier)]
    spans = [_span(t) for t in tables if len(t.parts) > 1 or t.name.lower() not in common]
    return {query[slice(*span)] for span in spans if span is not None}


def table_uses(statement: exp.Expression, query: str) -> Iterator[TableUse]:
    """Yields the tables whose rows are restricted by conditions in a query.

    Args:
        statement: the parsed query.
        query: the text of the query.
    """
    defined = [(cte.alias.lower(), cte.this) for cte in statement.find_all(exp.CTE)]
    common = [name for name, _ in defined]
    named = [t.name.lower() for t in statement.find_all(exp.Table) if len(t.parts) == 1]
    renamed = {cte.alias.lower() for cte in statement.find_all(exp.CTE) if _has_columns(cte)}
    once = {
        name: body
        for name, body in defined
        if named.count(name) == 1 == common.count(name) and name not in renamed
    }
    columns = [tuple(part.name.lower() for part in c.parts) for c in statement.find_all(exp.Column)]
    inherited: dict[int, list[exp.Expression]] = {}
    for select in _outer_first(statement):
        for node, conditions, others, merged in _sources(select, inherited.get(id(select), [])):
            is_table = isinstance(node, exp.Table)
            if is_table and len(node.parts) == 1 and node.name.lower() in common:
                body = once.get(node.name.lower())
            elif is_table:
                use = _use(node, query)
                if use is not None and (use.has_alias or not _by_database(node, columns)):
                    use.conditions, use.merged = conditions, merged
                    use.others = others - {use.qualifier}
                    if conditions:
                        yield use
                continue
            else:
                body = node.this
            if isinstance(body, exp.Select) and not _has_columns(node):
                handed = (_handed_on(c, node, len(others) == 1, body) for c in conditions)
                inherited[id(body)] = [c for c in handed if c is not None]


def _outer_first(statement: exp.Expression) -> list[exp.Select]:
    """Returns all SELECTs. Each precedes the SELECTs that it reads from."""
    selects = list(statement.find_all(exp.Select))
    places = {id(select): place for place, select in enumerate(selects)}
    return sorted(selects, key=lambda s: (s.depth, -places[id(s)]))


def _sources(
    select: exp.Select, inherited: list[exp.Expression]
) -> Iterator[tuple[exp.Expression, list[exp.Expression], set[str], set[str]]]:
    """Yields the tables and subqueries of a SELECT.

    Each comes with the conditions on its rows, the names of all sources (including LATERAL VIEWs),
    and the names of the USING columns. An unqualified reference to one of these columns resolves to
    the first source, not to this one.
    """
    first = select.args.get("from_") or select.args.get("from")
    if first is None:
        return
    joins = select.args.get("joins") or []
    nodes = [first.this, *(join.this for join in joins)]
    if any(node.args.get("joins") or node.args.get("pivots") for node in nodes):
        return
    if any(join.args.get("method") for join in joins):
        return  # NATURAL joins
    using = {column.name.lower() for join in joins for column in join.args.get("using") or []}
    sides = [(join.side.upper(), join.kind.upper()) for join in joins]
    if any(kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI") for _, kind in sides):
        return
    names = [node.alias_or_name.lower() for node in nodes]
    views = [view.alias.lower() for view in select.args.get("laterals") or []]
    if not all(views):
        return
    where = select.args.get("where")
    filters = [*conjuncts(where.this if where is not None else None), *inherited]
    for number, node in enumerate(nodes):
        plain = not any(value and name not in _PLAIN_TABLE for name, value in node.args.items())
        is_table = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier)
        if not plain or not (is_table or isinstance(node, exp.Subquery)):
            continue
        if [*names, *views].count(names[number]) > 1:
            continue
        hidden = _is_hidden(number, sides) or _is_optional(number, sides)
        conditions = [] if hidden else list(filters)
        for place, join in enumerate(joins, start=1):
            if _must_match(number, place, sides):
                conditions += conjuncts(join.args.get("on"))
        yield node, conditions, {*names, *views}, using if number else set()


def _is_hidden(number: int, sides: list[tuple[str, str]]) -> bool:
    """Whether the columns of source `number` are visible only in its own join."""
    return number > 0 and sides[number - 1][1] in ("SEMI", "ANTI")


def _is_optional(number: int, sides: list[tuple[str, str]]) -> bool:
    """Whether an outer join may replace rows of source `number` with nulls."""
    side, kind = sides[number - 1] if number else ("", "")
    own = side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI")
    return own or any(later in ("RIGHT", "FULL") for later, _ in sides[number:])


def _must_match(number: int, place: int, sides: list[tuple[str, str]]) -> bool:
    """Whether rows of source `number` matter only if they match in the join of source `place`."""
    side, kind = sides[place - 1]
    if number == place:
        return side in ("", "LEFT") and not any(s in ("RIGHT", "FULL") for s, _ in sides[place:])
    inner = side == "" and kind in ("", "INNER", "CROSS")
    shown = not _is_hidden(number, sides) and not _is_optional(number, sides)
    return number < place and inner and shown


def _use(table: exp.Table, query: str) -> TableUse | None:
    span = _span(table)
    if span is None:
        return None
    start, end = span
    alias = table.args.get("alias")
    if alias is not None and (_has_columns(table) or not alias.name):
        return None
    name = alias.name if alias is not None else table.name
    return TableUse(start, end, query[start:end], name.lower(), alias is not None)


def _span(table: exp.Table) -> tuple[int, int] | None:
    """Returns the start and end of a table's name in the query, or None if they are unknown."""
    spans = [(part.meta.get("start"), part.meta.get("end")) for part in table.parts]
    if any(a is None or b is None for a, b in spans):
        return None
    return spans[0][0], spans[-1][1] + 1


def _has_columns(node: exp.Expression) -> bool:
    alias = node.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _by_database(table: exp.Table, columns: list[tuple[str, ...]]) -> bool:
    """Whether a column may be qualified with the table's database.

    Such a column would not resolve if the table had an alias.
    """
    return any(table.name.lower() in parts[1:-1] for parts in columns)


def _handed_on(
    condition: exp.Expression, node: exp.Expression, is_alone: bool, body: exp.Select
) -> exp.Expression | None:
    """Translates a condition on a subquery into a condition on its sources. Returns None if this is
    not possible.

    Args:
        is_alone: whether the subquery is the only source, so all unqualified columns belong to it.
    """
    if any(value and name not in _PLAIN_SELECT for name, value in body.args.items()):
        return None
    calls = (exp.Func, exp.Anonymous, exp.Query, exp.Window)
    if any(item.find(*calls) is not None for item in body.expressions):
        return None  # for example, explode changes the number of rows
    if condition.find(exp.Query) is not None:
        return None
    condition = condition.copy()
    holder = exp.Paren(this=condition)
    try:
        for column in list(condition.find_all(exp.Column)):
            parts, own = parts_of(column), node.alias_or_name.lower()
            if len(parts) > 1 and parts[0].lower() == own:
                parts = parts[1:]
            elif not is_alone or len(parts) > 1:
                return None
            column.replace(_named(parts, body))
    except NotUnderstood:
        return None
    return holder.this


def _named(parts: tuple[str, ...], body: exp.Select) -> exp.Column:
    """Returns the source column that a SELECT returns under the given name."""
    name = parts[0].lower()
    found = [i for i in body.expressions if not i.is_star and i.alias_or_name.lower() == name]
    stars = [item for item in body.expressions if item.is_star]
    if len(found) == 1 and not stars and isinstance(found[0].unalias(), exp.Column):
        parts = (*parts_of(found[0].unalias()), *parts[1:])
    elif found or not all(isinstance(star, exp.Star) for star in stars) or len(stars) != 1:
        raise NotUnderstood(f"{parts[0]} is not a column of the subquery's sources")
    elif any(stars[0].args.values()) or body.args.get("joins"):
        raise NotUnderstood("the star excludes columns or covers several sources")
    return _column(parts)


def _column(parts: tuple[str, ...]) -> exp.Column:
    names = [exp.to_identifier(part, quoted=True) for part in parts]
    column = exp.Column(this=names[-1])
    for name, part in zip(("table", "db", "catalog"), reversed(names[:-1]), strict=False):
        column.set(name, part)
    if len(names) > 4:
        raise NotUnderstood("the column's name has too many parts")
    return column
