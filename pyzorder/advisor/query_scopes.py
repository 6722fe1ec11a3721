"""Expands CTEs and views in queries, and resolves columns in nested scopes to their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyzorder.advisor.workload import Catalog, NotUnderstood, Relation, TableNames

DIALECT = "spark"
DEPTH = 40


def arg(node: exp.Expression, name: str) -> exp.Expression | None:
    """Returns an argument whose name ends in an underscore in some versions of sqlglot."""
    return node.args.get(f"{name}_") or node.args.get(name)


def conjuncts(condition: exp.Expression | None) -> Iterator[exp.Expression]:
    """Yields the operands of a condition's top-level AND."""
    if isinstance(condition, exp.Paren):
        yield from conjuncts(condition.this)
    elif isinstance(condition, exp.And):
        yield from conjuncts(condition.left)
        yield from conjuncts(condition.right)
    elif condition is not None:
        yield condition


def top_queries(node: exp.Expression) -> Iterator[exp.Expression]:
    """Yields the outermost queries below a node."""
    for child in node.iter_expressions():
        if isinstance(child, exp.Query):
            yield child
        else:
            yield from top_queries(child)


def has_query(node: exp.Expression) -> bool:
    """Whether an expression contains a subquery."""
    return node.find(exp.Query) is not None


def parts_of(table: exp.Table) -> tuple[str, ...]:
    """Returns the parts of a table's name."""
    return tuple(part.name for part in table.parts)


class Expansion:
    """Replaces references to views and CTEs with copies of their queries."""

    def __init__(self, table: TableNames, catalog: Catalog, database: str) -> None:
        """`database` is the current database."""
        self.opaque: list[str] = []
        self._table = table
        self._catalog = catalog
        self._database = database

    def expand(self, query: exp.Expression) -> exp.Expression:
        """Returns an equivalent query that refers only to tables, each qualified by its database.

        Temporary views of DataFrames have no SQL text, so they are added to `opaque` instead.

        Raises:
            NotUnderstood: the query has WITH RECURSIVE, sqlglot cannot parse the text of a view,
                or views and CTEs are nested too deeply.
        """
        holder = exp.Subquery(this=query.copy())
        self._visit(holder, {}, (self._database,), 0)
        return holder.this

    def _visit(
        self,
        node: exp.Expression,
        known: dict[str, exp.Subquery],
        namespace: tuple[str, ...],
        depth: int,
    ) -> None:
        if depth > DEPTH:
            raise NotUnderstood("views or WITH clauses that are nested too deeply")
        with_ = arg(node, "with")
        if isinstance(with_, exp.With):
            known = dict(known)
            for cte in with_.expressions:
                if with_.args.get("recursive") and self._names(cte.this, cte.alias):
                    raise NotUnderstood("WITH RECURSIVE")
                holder = exp.Subquery(this=cte.this.copy(), alias=cte.args["alias"].copy())
                self._visit(holder, known, namespace, depth + 1)
                known[cte.alias.lower()] = holder
            with_.pop()
        for child in list(node.iter_expressions()):
            if isinstance(child, exp.Table):
                self._replace(child, known, namespace, depth)
            else:
                self._visit(child, known, namespace, depth)

    def _names(self, query: exp.Expression, name: str) -> bool:
        return any(t.name.lower() == name.lower() for t in query.find_all(exp.Table))

    def _replace(
        self,
        table: exp.Table,
        known: dict[str, exp.Subquery],
        namespace: tuple[str, ...],
        depth: int,
    ) -> None:
        for name in ("joins", "laterals"):
            for inner in table.args.get(name) or []:
                self._visit(inner, known, namespace, depth)
        parts = parts_of(table)
        if not parts or not isinstance(table.this, exp.Identifier):
            return
        if len(parts) == 1 and parts[0].lower() in known:
            found = known[parts[0].lower()]
            self._put(table, found.this.copy(), found.args["alias"])
            return
        if len(parts) == 1:
            temporary = self._catalog.relation(parts)
            if temporary.is_temporary:
                self._view(table, temporary, depth)
                return
            parts = (*namespace, *parts)
            table.set("db", exp.to_identifier(namespace[-1], quoted=True))
            if len(namespace) > 1:
                table.set("catalog", exp.to_identifier(namespace[0], quoted=True))
        if not self._table.match(parts):
            relation = self._catalog.relation(parts)
            if relation.is_view:
                self._view(table, relation, depth)

    def _view(self, table: exp.Table, view: Relation, depth: int) -> None:
        if view.text is None:  # a temporary view of a DataFrame
            self.opaque.append(table.name)
            return
        try:
            query = parse_one(view.text, dialect=DIALECT)
        except SqlglotError:
            raise NotUnderstood("a view whose text sqlglot cannot parse") from None
        holder = exp.Subquery(this=query)
        self._visit(holder, {}, view.namespace or (self._database,), depth + 1)
        columns = [exp.to_identifier(c, quoted=True) for c in view.columns or ()]
        self._put(table, holder.this, exp.TableAlias(columns=columns))

    def _put(self, table: exp.Table, query: exp.Expression, named: exp.TableAlias) -> None:
        """Replaces a table with a query, which gets the table's alias.

        If the alias includes column names, the query also gets these names. Otherwise, it gets the
        column names in `named`.
        """
        columns = table.alias_column_names or [c.name for c in named.args.get("columns") or []]
        alias = exp.TableAlias(
            this=exp.to_identifier(table.alias or table.name, quoted=True),
            columns=[exp.to_identifier(c, quoted=True) for c in columns],
        )
        kept = {n: table.args[n] for n in ("joins", "laterals", "pivots") if table.args.get(n)}
        table.replace(exp.Subquery(this=query, alias=alias, **kept))


@dataclass
class Source:
    """A source in FROM or JOIN.

    Attributes:
        node: the source as parsed.
        join: the JOIN that adds the source; None for the first source.
        table: the parts of its name if it is a table.
        branches: the SELECTs of the source if it is a subquery. A UNION has several. Empty for
            tables, and for sources that are not understood.
        whole: whether the source returns every row of its branches, regardless of other rows.
    """

    node: exp.Expression
    join: exp.Join | None
    table: tuple[str, ...] | None = None
    branches: list[Scope] = field(default_factory=list)
    whole: bool = True


class Scope:
    """The scope of a SELECT: its sources, keyed by name, and the scopes of its subqueries."""

    def __init__(self, select: exp.Select, catalog: Catalog) -> None:
        self.select = select
        self._catalog = catalog
        self.sources: dict[str, Source] = {}
        first = arg(select, "from")
        items = [(first.this, None)] if first is not None else []
        items += [(join.this, join) for join in select.args.get("joins") or []]
        for node, join in items:
            self._add(node, join)
        self.subqueries: list[Scope] = []
        for name, values in select.args.items():
            if name.rstrip("_") not in ("from", "joins", "with"):
                for value in values if isinstance(values, list) else [values]:
                    if isinstance(value, exp.Expression):
                        self._inner(value)
        for _, join in items:
            if join is not None and join.args.get("on") is not None:
                self._inner(exp.Paren(this=join.args["on"].copy()))

    def _inner(self, node: exp.Expression) -> None:
        found = [node] if isinstance(node, exp.Query) else top_queries(node)
        for query in found:
            self.subqueries += branches_of(query, self._catalog)[0]

    def _add(self, node: exp.Expression, join: exp.Join | None) -> None:
        source = Source(node, join)
        if node.args.get("pivots"):
            raise NotUnderstood("PIVOT")
        if node.args.get("joins"):
            raise NotUnderstood("joins in parentheses")
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            raise NotUnderstood("tables in parentheses")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            source.table = parts_of(node)
        elif isinstance(node, exp.Subquery):
            source.branches, source.whole = branches_of(node, self._catalog)
        # A source without an alias gets a generated name that no query can use as a qualifier.
        name = node.alias_or_name.lower() or f" {len(self.sources)}"
        if name in self.sources:
            raise NotUnderstood("two tables or subqueries of the same name")
        self.sources[name] = source

    def columns(self, name: str) -> list[str] | None:
        """Returns the names of a source's columns, or None if they are unknown."""
        source = self.sources[name]
        renamed = source.node.alias_column_names
        if renamed:
            return list(renamed)
        if source.table is not None:
            known = self._catalog.relation(source.table).columns
            return None if known is None else list(known)
        return source.branches[0].names() if source.branches else None

    def names(self) -> list[str] | None:
        """Returns the names of the SELECT's columns, or None if they are unknown."""
        found = self.projections()
        return None if found is None else [name for name, _ in found]

    def projections(self) -> list[tuple[str, exp.Expression]] | None:
        """Returns each selected column's name and expression, or None if they are unknown."""
        found: list[tuple[str, exp.Expression]] = []
        for item in self.select.selects:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                if star.args.get("except_") or star.args.get("except") or star.args.get("replace"):
                    return None
                of = [item.table.lower()] if isinstance(item, exp.Column) else list(self.sources)
                for name in of:
                    columns = self.columns(name) if name in self.sources else None
                    if columns is None:
                        return None
                    found += [(c, exp.column(c, name, quoted=True)) for c in columns]
            else:
                found.append((item.alias_or_name, item.unalias()))
        return found

    def resolve(self, column: exp.Column) -> tuple[str, list[str]] | None:
        """Returns a column's source, and the column's path in that source.

        The path of a struct field has several parts. Returns None if the source is unknown.
        """
        parts = [part.name for part in column.parts]
        for i in range(len(parts) - 1):
            if parts[i].lower() in self.sources:
                return parts[i].lower(), parts[i + 1 :]
        lists = {name: self.columns(name) for name in self.sources}
        having = [
            name
            for name, columns in lists.items()
            if columns is not None and parts[0].lower() in (c.lower() for c in columns)
        ]
        if having:
            return having[0], parts
        unknown = [name for name, columns in lists.items() if columns is None]
        return (unknown[0], parts) if len(unknown) == 1 and len(parts) == 1 else None

    def conditions(self) -> Iterator[tuple[exp.Expression, exp.Join | None]]:
        """Yields the conjuncts of WHERE, ON, USING and HAVING.

        Leaves out conjuncts of HAVING that contain aggregate functions. Each conjunct of ON or
        USING comes with its JOIN.
        """
        where = self.select.args.get("where")
        for part in conjuncts(where.this if where is not None else None):
            yield part, None
        having = self.select.args.get("having")
        for part in conjuncts(having.this if having is not None else None):
            if part.find(exp.AggFunc) is None:
                yield part, None
        before: list[str] = []
        for name, source in self.sources.items():
            join = source.join
            if join is not None:
                for part in conjuncts(join.args.get("on")):
                    yield part, join
                for using in join.args.get("using") or []:
                    of = next((b for b in before if self._has(b, using.name)), None)
                    if of is not None:
                        left, right = (exp.column(using.name, n, quoted=True) for n in (of, name))
                        yield exp.EQ(this=left, expression=right), join
            before.append(name)

    def _has(self, source: str, column: str) -> bool:
        return column.lower() in (c.lower() for c in self.columns(source) or ())

    def is_optional(self, name: str) -> bool:
        """Whether an outer join may replace rows of the source with nulls."""
        below = False
        for other, source in self.sources.items():
            side = source.join.side.upper() if source.join is not None else ""
            kind = source.join.kind.upper() if source.join is not None else ""
            if other == name:
                below = side in ("LEFT", "FULL") and kind not in ("SEMI", "ANTI")
            elif side in ("RIGHT", "FULL") and list(self.sources).index(name) < list(
                self.sources
            ).index(other):
                below = True
        return below

    def walk(self) -> Iterator[Scope]:
        """Yields this scope and all scopes nested in it."""
        yield self
        for source in self.sources.values():
            for branch in source.branches:
                yield from branch.walk()
        for scope in self.subqueries:
            yield from scope.walk()


def branches_of(query: exp.Expression, catalog: Catalog) -> tuple[list[Scope], bool]:
    """Returns the scopes of a query's SELECTs, and whether the query returns all of their rows."""
    whole = not any(query.args.get(name) for name in ("limit", "offset"))
    if isinstance(query, exp.Subquery):
        branches, inner = branches_of(query.this, catalog)
        return branches, whole and inner
    if isinstance(query, exp.SetOperation):
        left, left_whole = branches_of(query.left, catalog)
        right, right_whole = branches_of(query.right, catalog)
        union = isinstance(query, exp.Union)
        return left + right, whole and union and left_whole and right_whole
    if isinstance(query, exp.Select):
        return [Scope(query, catalog)], whole
    return [], False
