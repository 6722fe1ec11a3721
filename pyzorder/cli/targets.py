"""Parses the tables and columns given on the command line, quotes them for SQL, and checks
conditions."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyzorder import ZOrderTable, bridge, errors
from pyzorder import table as tables
from pyzorder.failures import condition, sentence
from pyzorder.session import check_session
from pyzorder.table import in_backticks, quoted_if_needed
from pyzorder.text import sql_list

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACK_QUOTED = r"`(?:[^`]|``)+`"
PART = re.compile(rf"\s*({BACK_QUOTED}|[^`.,]*[^`.,\s])\s*([.,]|$)")

#: What distinguishes an expression from a name. Names may contain other operators, such as a-b.
EXPRESSION = re.compile(r"[(<>=]")

WITH_FORMAT = re.compile(rf"(parquet|orc)\.({BACK_QUOTED}|(?:/|\w+:/).*)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A table, specified by the parts of its name, or by its folder and optionally its format."""

    name: tuple[str, ...] = ()
    path: str = ""
    format: str | None = None

    def __str__(self) -> str:
        return self.path or ".".join(self.name)

    def text(self) -> str:
        """Returns the table's name or path in SQL syntax, which pyzorder's functions accept."""
        if self.format:
            return f"{self.format}.{in_backticks(self.path)}"
        return tables.quoted(self.path) if self.path else ".".join(map(quoted_if_needed, self.name))

    def table(self, spark: SparkSession) -> ZOrderTable:
        """Returns the table in a session.

        Raises:
            ZOrderError: the session does not run pyzorder, or the table is not in its catalog.
        """
        if self.format:
            check_session(spark)
            return ZOrderTable(spark, self.text())
        if self.path:
            return ZOrderTable.forPath(spark, self.path)
        with missing_tables_explained(spark, str(self)):
            return ZOrderTable.forName(spark, ".".join(map(in_backticks, self.name)))


@contextmanager
def missing_tables_explained(spark: SparkSession, name: str | None = None) -> Iterator[None]:
    """Replaces Spark's error for an unknown table with one that says where to look for the table.

    Args:
        name: the table's name; None to take it from Spark's error.

    Raises:
        ZOrderError: the table is not in the session's catalog.
    """
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as failure:
        if condition(failure) != "TABLE_OR_VIEW_NOT_FOUND":
            raise
        if name is None:
            given = failure.getMessageParameters() or {}
            name = given.get("relationName", "").replace("`", "")
        in_memory = (
            not bridge.is_connect(spark)
            and spark.conf.get("spark.sql.catalogImplementation") == "in-memory"
        )
        raise errors.table_not_found(name, in_memory, Path(name).is_dir()) from None


def unquoted(part: str) -> str:
    """Removes the backticks around a part of a name, if there are any."""
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def sql_name(parts: Iterable[str]) -> str:
    """Joins the parts of a name, each of them in backticks."""
    return ".".join(map(in_backticks, parts))


def names(text: str) -> list[tuple[str, ...]]:
    """Splits text such as `a, c.d, `odd, name`` into names, and each name into its parts.

    Unquoted parts may contain anything but commas, dots and backticks.

    Raises:
        click.BadParameter: the text is not a list of names.
    """
    found: list[tuple[str, ...]] = []
    parts: list[str] = []
    at = 0
    while True:
        part = PART.match(text, at)
        if part is None:
            raise click.BadParameter(
                f"{text!r} is not a list of names: write it like a,b.c, with backquotes around "
                "names that contain commas, dots or backquotes."
            )
        parts.append(unquoted(part[1]))
        at = part.end()
        if part[2] != ".":
            found.append(tuple(parts))
            parts = []
        if part[2] == "":
            return found


class TargetType(click.ParamType[Target]):
    """A parameter type for a table's name or folder."""

    name = "target"

    def convert(self, value: Any, param: Any, ctx: Any) -> Target:
        """Parses a target."""
        if isinstance(value, Target):
            return value
        with_format = WITH_FORMAT.fullmatch(value)
        if with_format:
            return Target(path=unquoted(with_format[2]), format=with_format[1].lower())
        if "/" in value and not value.startswith("`") or value in (".", ".."):
            return Target(path=value)
        found = names(value)
        if len(found) > 1:
            raise click.BadParameter(f"{value!r} names several tables: name only one.")
        return Target(name=found[0])


class ColumnsType(click.ParamType[list[str]]):
    """A parameter type for comma-separated columns."""

    name = "columns"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        """Returns the names of the columns, quoted for SQL, and the expressions as written."""
        if isinstance(value, list):
            return value
        inner = re.fullmatch(r"\s*\((.*)\)\s*", value, re.DOTALL)  # as in SQL: (a, b)
        text = inner[1] if inner else value
        items = sql_list.split(text) if EXPRESSION.search(text) else None
        if items is None:
            return [sql_name(parts) for parts in names(text)]
        return [
            name
            for item in items
            for name in ([item] if EXPRESSION.search(item) else map(sql_name, names(item)))
        ]


def listed(columns: Iterable[Iterable[str]]) -> list[str] | None:
    """Joins the columns of all arguments; returns None if there are none."""
    return [name for some in columns for name in some] or None


target_argument = click.argument("target", type=TargetType())


def columns_argument(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator that adds the argument COLUMNS, and hidden options --columns and --zorder-by."""

    @functools.wraps(command)
    def with_columns(columns: Sequence[list[str]], by: Sequence[list[str]], **rest: Any) -> None:
        command(columns=[*columns, *by], **rest)

    option = click.option(
        "--columns", "--zorder-by", "by", type=ColumnsType(), multiple=True, hidden=True
    )
    return click.argument("columns", nargs=-1, type=ColumnsType())(option(with_columns))


def check_condition(spark: SparkSession, where: str | None) -> None:
    """Checks that text is a single SQL condition, before it becomes part of a statement.

    Raises:
        click.BadParameter: the text is not a condition, or more text follows the condition.
    """
    from pyspark.errors import AnalysisException, ParseException

    if where is None:
        return
    try:
        if bridge.is_connect(spark):
            _ = spark.range(0).where(where).schema
        else:
            bridge.require_condition(spark, where)
    except ParseException as failure:
        raise click.BadParameter(
            f"{where!r} is not a single SQL condition, such as \"day = '2024-01-01'\": "
            f"{sentence(failure)}",
            param_hint="--where",
        ) from None
    except AnalysisException:
        return  # the condition parses; the statement itself reports unknown columns
