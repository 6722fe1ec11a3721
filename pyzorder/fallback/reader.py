"""Reads a table with data skipping: `read(spark, "sales").where("customer_id = 7")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyzorder.fallback import tables
from pyzorder.fallback.selection import Selection, check_settled, select_files
from pyzorder.index.predicates.conditions import NotUnderstood, conjuncts, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class TableReader:
    """Reads the rows of a table that match a condition. Opens only files that may contain such
    rows."""

    def __init__(
        self, spark: SparkSession, table: tables.Table, schema: StructType | str | None = None
    ) -> None:
        self._spark = spark
        self._table = table
        self._schema = schema

    def all(self) -> DataFrame:
        """Returns all rows of the table. Does not skip any files.

        Raises:
            ZOrderError: the table has an unfinished OPTIMIZE that is moving files.
        """
        check_settled(self._table)
        return tables.frame_of(self._spark, self._table, schema=self._schema)

    def where(self, condition: str) -> DataFrame:
        """Returns the rows for which an SQL condition is TRUE.

        Spark opens only the files that may have such rows, and applies the whole condition to their
        rows. If a part of the condition is not supported, Spark opens more files.

        Raises:
            ZOrderError: the table has an unfinished OPTIMIZE that is moving files.
            AnalysisException: Spark rejects the condition.
        """
        frame = self.all()
        return _with(frame, self._selection(frame, condition)).where(condition)

    def select_files(self, condition: str) -> Selection:
        """Returns the files that `where` would skip, and the reasons why it does not skip more."""
        return self._selection(self.all(), condition)

    def _selection(self, frame: DataFrame, condition: str) -> Selection:
        try:
            parts = list(conjuncts(parse(condition)))
        except NotUnderstood as reason:
            return Selection(self._table.name, reasons=(f"not usable: {reason}",))
        own = self._table.name.replace("`", "").rsplit(".", 1)[-1].lower()

        def unqualified(names: tuple[str, ...]) -> tuple[str, ...]:
            if len(names) > 1 and self._table.is_catalog and names[0].lower() == own:
                raise NotUnderstood(f"{names[0]} may refer to a column or to the table")
            return names

        return select_files(self._spark, self._table, frame, parts, unqualified)


def _with(frame: DataFrame, selection: Selection) -> DataFrame:
    """Excludes the rows of skipped files, if Spark provides a `_metadata` column for the table."""
    kept = selection.filter_text()
    if kept is None:
        return frame
    try:
        found = frame.where(kept)
        _ = found.schema  # a Connect client analyzes the query when it needs the schema
        return found
    except Exception:
        return frame


def read(
    spark: SparkSession,
    table: str,
    format: str = "parquet",
    schema: StructType | str | None = None,
) -> TableReader:
    """Returns a reader for a table that uses the table's index.

    Args:
        table: the table's name in SQL syntax, or the path of its folder. Any string with a slash
            and no backtick is a path.
        format: the format of the files if `table` is a path, either parquet or orc.
        schema: the schema of the files if `table` is a path. By default, Spark infers it.
    """
    return TableReader(spark, target(spark, table, format), schema)


def target(spark: SparkSession, table: str, format: str = "parquet") -> tables.Table:
    """Returns the table with this SQL name, or at this path."""
    if "/" in table and "`" not in table:
        return tables.path_table(spark, table, format)
    return tables.lookup(spark, table)
