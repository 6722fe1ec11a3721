"""Runs SQL queries with data skipping: `sql(spark, "SELECT … WHERE …")`.

In the query's text, each table whose rows the query restricts is replaced with
`(SELECT * FROM t WHERE …) AS t`. The condition excludes files without relevant rows. The rest of
the text is unchanged.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from pyzorder.fallback import tables
from pyzorder.fallback.query_tables import TableUse, named_tables, table_uses
from pyzorder.fallback.selection import Selection, check_settled, select_files
from pyzorder.index.predicates.conditions import NotUnderstood, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def sql(spark: SparkSession, query: str, args: Any = None) -> DataFrame:
    """Runs `spark.sql(query, args)`, and opens only files that may have relevant rows.

    If a part of the query is not supported, the query opens more files. Statements that are not
    queries are passed to Spark unchanged.

    Raises:
        ZOrderError: a table has an unfinished OPTIMIZE that is moving files.
        AnalysisException: Spark rejects the query.
    """
    named = _settled_tables(spark, query)
    whole = _run(spark, query, args)
    text = _rewritten(query, _selections(spark, query, named))
    if text == query:
        return whole
    try:
        rewritten = _run(spark, text, args)
        return rewritten if rewritten.schema == whole.schema else whole
    except Exception:  # the query may use a name that resolves only for the table itself
        return whole


def explain(spark: SparkSession, query: str) -> list[Selection]:
    """Returns, for each table in the query, the files that `sql` would skip."""
    named = _settled_tables(spark, query)
    return [selection for _, selection in _selections(spark, query, named)]


def _run(spark: SparkSession, query: str, args: Any) -> DataFrame:
    return spark.sql(query, args) if args else spark.sql(query)


def _settled_tables(spark: SparkSession, query: str) -> dict[str, tables.Table]:
    """Returns the tables of a query that Spark can resolve, keyed by their names in the query.

    Raises:
        ZOrderError: a table has an unfinished OPTIMIZE that is moving files.
    """
    found = {}
    for name in named_tables(query):
        with contextlib.suppress(Exception):  # Spark reports unknown tables itself
            found[name] = tables.lookup(spark, name)
    for table in found.values():
        check_settled(table)
    return found


def _selections(
    spark: SparkSession, query: str, named: dict[str, tables.Table]
) -> list[tuple[TableUse, Selection]]:
    try:
        if "_metadata" in query.lower():
            raise NotUnderstood("the query mentions _metadata")
        statement = parse(query)
        uses = list(table_uses(statement, query)) if isinstance(statement, exp.Query) else []
    except NotUnderstood:
        return []
    frames: dict[str, DataFrame] = {}
    found = []
    for use in uses:
        if use.text not in named:
            continue
        if use.text not in frames:
            try:
                frames[use.text] = tables.frame_of(spark, named[use.text])
            except Exception:  # Spark reports the error itself
                continue
        found.append((use, _selection(spark, named[use.text], frames[use.text], use)))
    return found


def _selection(
    spark: SparkSession, table: tables.Table, frame: DataFrame, use: TableUse
) -> Selection:
    columns = {name.lower() for name in frame.columns}

    def unqualified(names: tuple[str, ...]) -> tuple[str, ...]:
        first = names[0].lower()
        if len(names) > 1 and first in use.others | {use.qualifier}:
            if first != use.qualifier or first in columns:
                raise NotUnderstood("the column belongs, or may belong, to another table")
            return names[1:]
        if first in use.merged:
            raise NotUnderstood("USING takes the column from another table")
        return names

    return select_files(spark, table, frame, use.conditions, unqualified)


def _rewritten(query: str, selections: list[tuple[TableUse, Selection]]) -> str:
    for use, selection in sorted(selections, key=lambda pair: -pair[0].start):
        kept = selection.filter_text()
        if kept is not None:
            alias = "" if use.has_alias else f" AS `{use.qualifier.replace('`', '``')}`"
            table = f"(SELECT * FROM {use.text} WHERE {kept}){alias}"
            query = query[: use.start] + table + query[use.end :]
    return query
