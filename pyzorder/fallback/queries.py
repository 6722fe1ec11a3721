"""Puts conditions on files into SQL queries: `sql(spark, "SELECT … WHERE …")`.

Each table of a query whose rows a condition restricts becomes `(SELECT * FROM t WHERE …) AS t`,
where the condition names files that can hold no row of use; all else of the text stays as it is.
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
    """`spark.sql(query, args)`, opening only the files that can hold rows of use.

    What is not understood of the query only opens more files. Statements that are no query go to
    Spark as they are.

    Raises:
        ZOrderError: files of a table are changing places.
        AnalysisException: Spark does not understand the query.
    """
    named = _settled_tables(spark, query)
    whole = _run(spark, query, args)
    text = _rewritten(query, _selections(spark, query, named))
    if text == query:
        return whole
    try:
        rewritten = _run(spark, text, args)
        return rewritten if rewritten.schema == whole.schema else whole
    except Exception:  # a name that only the table itself answers to
        return whole


def explain(spark: SparkSession, query: str) -> list[Selection]:
    """What `sql` would leave out, table by table."""
    named = _settled_tables(spark, query)
    return [selection for _, selection in _selections(spark, query, named)]


def _run(spark: SparkSession, query: str, args: Any) -> DataFrame:
    return spark.sql(query, args) if args else spark.sql(query)


def _settled_tables(spark: SparkSession, query: str) -> dict[str, tables.Table]:
    """The tables that a query names and Spark knows, by the names as it writes them.

    Raises:
        ZOrderError: files of one are changing places.
    """
    found = {}
    for name in named_tables(query):
        with contextlib.suppress(Exception):  # Spark will say so itself
            found[name] = tables.lookup(spark, name)
    for table in found.values():
        check_settled(table)
    return found


def _selections(
    spark: SparkSession, query: str, named: dict[str, tables.Table]
) -> list[tuple[TableUse, Selection]]:
    try:
        if "_metadata" in query.lower():
            raise NotUnderstood("_metadata")
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
            except Exception:  # Spark will say so itself
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
                raise NotUnderstood("a column of another table, or a name of both")
            return names[1:]
        if first in use.merged:
            raise NotUnderstood("a column that USING takes from another table")
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
