"""Reads a table by its index: `read(spark, "sales").where("customer_id = 7")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyzorder.fallback import tables
from pyzorder.fallback.selection import Selection, check_settled, select_files
from pyzorder.index.predicates.conditions import NotUnderstood, conjuncts, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class TableReader:
    """A table that is read file by file, as a condition needs them."""

    def __init__(
        self, spark: SparkSession, table: tables.Table, schema: StructType | str | None = None
    ) -> None:
        self._spark = spark
        self._table = table
        self._schema = schema

    def all(self) -> DataFrame:
        """Every row, as Spark reads the table.

        Raises:
            ZOrderError: files of the table are changing places.
        """
        check_settled(self._table)
        return tables.frame_of(self._spark, self._table, schema=self._schema)

    def where(self, condition: str) -> DataFrame:
        """The rows for which a condition is TRUE, as SQL writes it.

        Only the files that can hold such rows are opened. What of the condition is not understood
        only opens more files: Spark applies the whole of it to the rows.

        Raises:
            ZOrderError: files of the table are changing places.
            AnalysisException: Spark does not understand the condition.
        """
        frame = self.all()
        return _with(frame, self._selection(frame, condition)).where(condition)

    def select_files(self, condition: str) -> Selection:
        """Which files `where` would leave out, and why no more."""
        return self._selection(self.all(), condition)

    def _selection(self, frame: DataFrame, condition: str) -> Selection:
        try:
            parts = list(conjuncts(parse(condition)))
        except NotUnderstood as reason:
            return Selection(self._table.name, reasons=(str(reason),))
        own = self._table.name.replace("`", "").rsplit(".", 1)[-1].lower()

        def unqualified(names: tuple[str, ...]) -> tuple[str, ...]:
            if len(names) > 1 and self._table.is_catalog and names[0].lower() == own:
                raise NotUnderstood("a name of a column or of the table")
            return names

        return select_files(self._spark, self._table, frame, parts, unqualified)


def _with(frame: DataFrame, selection: Selection) -> DataFrame:
    """The rows but those of skipped files; all, where Spark has no `_metadata` of the files."""
    kept = selection.filter_text()
    if kept is None:
        return frame
    try:
        found = frame.where(kept)
        _ = found.schema  # a Connect client looks at it no sooner
        return found
    except Exception:
        return frame


def read(
    spark: SparkSession,
    table: str,
    format: str = "parquet",
    schema: StructType | str | None = None,
) -> TableReader:
    """A table of the catalog, or the files in a folder, to be read by its index.

    Args:
        table: a name as SQL writes it, or a path: what holds a slash and no back-quote.
        format: of a path's files, parquet or orc.
        schema: of a path's files; None: Spark finds it out.
    """
    return TableReader(spark, target(spark, table, format), schema)


def target(spark: SparkSession, table: str, format: str = "parquet") -> tables.Table:
    """The table of a name as SQL writes it, or of a path."""
    if "/" in table and "`" not in table:
        return tables.path_table(spark, table, format)
    return tables.lookup(spark, table)
