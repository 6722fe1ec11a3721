"""Determines how the queries in SQL statements read a table."""

from __future__ import annotations

import logging

from sqlglot import exp, parse_one, tokenize
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType

from pyzorder.advisor.query_readings import QueryReadings
from pyzorder.advisor.query_scopes import DIALECT, Expansion, branches_of
from pyzorder.advisor.workload import Catalog, NotUnderstood, TableNames, Workload

logging.getLogger("sqlglot").addFilter(lambda record: "Falling back to parsing" not in record.msg)


def split(text: str) -> list[str]:
    """Splits text into statements at semicolons.

    Raises:
        NotUnderstood: a quote or comment is not closed.
    """
    try:
        tokens = tokenize(text, dialect=DIALECT)
    except SqlglotError as failure:
        raise NotUnderstood(f"the file cannot be split into statements: {failure}") from None
    found, start = [], 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            found.append(text[start : token.start])
            start = token.end + 1
    last = text[start:] if not tokens or tokens[-1].token_type != TokenType.SEMICOLON else ""
    return [statement.strip() for statement in [*found, last] if statement.strip()]


def query_of(statement: exp.Expression) -> exp.Expression | None:
    """Returns the query that a statement runs, or None if it does not run one."""
    if isinstance(statement, exp.Create) and statement.kind == "VIEW":
        return None
    if not isinstance(statement, (exp.Insert, exp.Create, exp.Cache)):
        return statement if isinstance(statement, exp.Query) else None
    query, name = statement.expression, "with_" if "with_" in exp.Select.arg_types else "with"
    around = statement.args.get(name)  # WITH … INSERT
    if isinstance(query, exp.Query) and around is not None:
        query = query.copy()
        inside = query.args.get(name)
        query.set(name, around.copy())
        if inside is not None:
            query.args[name].set("expressions", [*around.expressions, *inside.expressions])
    return query if isinstance(query, exp.Query) else None


def is_query(text: str) -> bool:
    """Whether text is an SQL statement that runs a query."""
    try:
        return query_of(parse_one(text, dialect=DIALECT)) is not None
    except (SqlglotError, RecursionError):
        return False


class StatementReader:
    """Adds statements to a workload."""

    def __init__(
        self, table: TableNames, catalog: Catalog, workload: Workload, database: str
    ) -> None:
        """`database` is the current database until a USE statement changes it."""
        self._table = table
        self._catalog = catalog
        self._workload = workload
        self._database = database

    def read(self, text: str, times: int = 1) -> None:
        """Adds a statement's readings of the table, or counts the reason for leaving it out.

        Args:
            times: how many times the statement ran.
        """
        found = Workload()
        try:
            self._read(text, found)
        except SqlglotError:
            found.leave_out("statements that sqlglot cannot parse", text)
        except (NotUnderstood, RecursionError) as failure:
            found.leave_out(f"statements with {failure or 'nesting that is too deep'}", text)
        self._workload.merge(found, times)

    def _read(self, text: str, found: Workload) -> None:
        statement = parse_one(text, dialect=DIALECT)
        if isinstance(statement, exp.Use):
            self._database = statement.this.name
            return
        query = query_of(statement)
        if query is None:
            found.leave_out("statements other than queries", text)
            return
        expansion = Expansion(self._table, self._catalog, self._database)
        scopes = branches_of(expansion.expand(query), self._catalog)[0]
        for name in expansion.opaque:
            found.leave_out("temporary views of DataFrames, which have no SQL text", name)
        found.add(QueryReadings(self._table, found, scopes).readings())
