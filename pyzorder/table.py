"""ZOrderTable runs pyzorder's statements from Python. Its methods are named after DeltaTable's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyzorder import errors
from pyzorder.session import check_session
from pyzorder.text import sql_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

#: A column name in SQL notation, such as a, a.b or `odd name`.`and field`.
_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_COLUMN = re.compile(rf"\s*{_PART}(?:\s*\.\s*{_PART})*\s*")

#: What distinguishes an expression from an incorrectly quoted name: a call, an operator or `[`.
_OPERATION = re.compile(r"\w\s*\(|[<>=!+*/%|&^~\[-]")


class ZOrderTable:
    """A plain Parquet or ORC table, in the catalog or at a path. Also works with Spark Connect."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        """Use `forName` or `forPath` instead. `target` is the table as written in SQL."""
        self._spark = spark
        self._target = target

    @classmethod
    def forName(cls, spark: SparkSession, name: str) -> ZOrderTable:
        """Returns a table in the catalog.

        Args:
            name: the table's name in SQL syntax, such as sales, db.sales or `` `odd name` ``.

        Raises:
            ZOrderError: the session does not run pyzorder.
            AnalysisException: the table does not exist.
        """
        check_session(spark)
        _ = spark.table(name).schema  # a Connect client resolves the name when it needs the schema
        return cls(spark, name)

    @classmethod
    def forPath(cls, spark: SparkSession, path: str) -> ZOrderTable:
        """Returns the table that `spark.read.parquet(path)` or `.orc(path)` reads from a folder.

        The folder is not read yet. If it does not exist, the first statement raises an error.

        Raises:
            ZOrderError: the session does not run pyzorder.
        """
        check_session(spark)
        return cls(spark, quoted(path))

    def optimize(self) -> OptimizeBuilder:
        """Returns a builder for an OPTIMIZE, which runs when an execute method is called."""
        return OptimizeBuilder(self._spark, self._target)

    def createSkippingIndex(self, *columns: str) -> DataFrame:
        """Creates the skipping index if there is none. Does not rewrite files.

        Args:
            columns: the columns and expressions to collect statistics for, in SQL syntax. By
                default, the first columns that can have statistics, up to
                `spark.sql.zorder.index.maxColumns`.

        Raises:
            ZOrderError: an argument is not one column or expression.
        """
        listed = f" ({_column_list(columns)})" if columns else ""
        return self._spark.sql(f"CREATE SKIPPING INDEX IF NOT EXISTS ON {self._target}{listed}")

    def refreshSkippingIndex(self) -> DataFrame:
        """Updates the skipping index to match the table's current files."""
        return self._spark.sql(f"REFRESH SKIPPING INDEX ON {self._target}")

    def describeSkippingIndex(self) -> DataFrame:
        """Returns the health of the skipping index, one row per column."""
        return self._spark.sql(f"DESCRIBE SKIPPING INDEX ON {self._target}")

    def dropSkippingIndex(self) -> DataFrame:
        """Removes the skipping index. The table's data files are not changed."""
        return self._spark.sql(f"DROP SKIPPING INDEX IF EXISTS ON {self._target}")

    def vacuum(self, retentionHours: int | None = None, dryRun: bool = False) -> DataFrame:
        """Deletes replaced files whose retention period has passed.

        Args:
            retentionHours: the retention period in hours. By default, the setting
                `spark.sql.zorder.vacuum.retentionHours`.
            dryRun: whether to list the files without deleting them.

        Returns:
            The deleted files or, with `dryRun`, the files that would be deleted.

        Raises:
            ZOrderError: `retentionHours` is not an integer.
        """
        if retentionHours is not None and type(retentionHours) is not int:
            raise errors.not_hours(retentionHours)
        retain = f" RETAIN {retentionHours} HOURS" if retentionHours is not None else ""
        dry_run = " DRY RUN" if dryRun else ""
        return self._spark.sql(f"VACUUM {self._target}{retain}{dry_run}")

    def restoreBeforeOptimize(self) -> DataFrame:
        """Restores the files that the last OPTIMIZE replaced. Files that were added since that
        OPTIMIZE are kept."""
        return self._spark.sql(f"RESTORE {self._target} TO BEFORE OPTIMIZE")

    def history(self) -> DataFrame:
        """Returns the runs of OPTIMIZE, RESTORE and VACUUM, one per row, oldest first."""
        return self._spark.sql(f"SELECT * FROM optimize_history({quoted(self._target)})")

    def workload(self) -> DataFrame:
        """Returns how queries have read the table, one row per form of conditions, if the setting
        `spark.sql.zorder.workload.record` is on."""
        return self._spark.sql(f"SELECT * FROM zorder_workload({quoted(self._target)})")

    def __repr__(self) -> str:
        return f"ZOrderTable({self._target})"


class OptimizeBuilder:
    """Builds an OPTIMIZE statement."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        self._spark = spark
        self._target = target
        self._where: str | None = None
        self._full = False
        self._dry_run = False

    def where(self, partition_predicate: str) -> OptimizeBuilder:
        """Restricts the OPTIMIZE to the partitions that satisfy an SQL condition.

        The condition may refer only to partition columns.

        Raises:
            ZOrderError: the builder already has a condition.
        """
        if self._where is not None:
            raise errors.where_twice()
        self._where = partition_predicate
        return self

    def full(self) -> OptimizeBuilder:
        """Makes the OPTIMIZE also rewrite files that are already clustered by the same columns.

        The OPTIMIZE then runs even if it would make lookups slower.
        """
        self._full = True
        return self

    def dryRun(self) -> OptimizeBuilder:
        """Makes this a dry run: no files change, and the metrics describe what would happen."""
        self._dry_run = True
        return self

    def executeZOrderBy(self, *columns: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Clusters the files by columns, named in SQL syntax, and expressions such as `lower(a)`.

        Returns:
            The metrics of the OPTIMIZE.

        Raises:
            ZOrderError: no columns are given, or an argument is not one column or expression.
        """
        names = [n for c in columns for n in (c if isinstance(c, (list, tuple)) else [c])]
        if not names:
            raise errors.no_columns()
        return self._spark.sql(self._statement(f" ZORDER BY ({_column_list(names)})"))

    def executeZOrderByAuto(self) -> DataFrame:
        """Clusters the files by columns that suit the queries recorded for the table.

        If no other columns suit them much better, keeps those of the last OPTIMIZE. The metrics'
        `remark` says what was chosen and why. If the table has a column called `auto`, clusters by
        this column, and says so.

        Returns:
            The metrics of the OPTIMIZE.
        """
        return self._spark.sql(self._statement(" ZORDER BY AUTO"))

    def executeCompaction(self) -> DataFrame:
        """Runs OPTIMIZE without ZORDER BY.

        Clusters by the columns that the table declares or, if it declares none, by the columns of
        the last OPTIMIZE. If no clustering columns are known, merges small files.

        Returns:
            The metrics of the OPTIMIZE.
        """
        return self._spark.sql(self._statement(""))

    def _statement(self, z_order: str) -> str:
        full = " FULL" if self._full else ""
        # If the condition ends with a comment, the line feed ends that comment. Without the line
        # feed, the comment would hide the rest of the statement.
        where = f" WHERE {self._where}\n" if self._where is not None else ""
        dry_run = " DRY RUN" if self._dry_run else ""
        return f"OPTIMIZE {self._target}{full}{where}{z_order}{dry_run}"


def _column_list(names: Iterable[object]) -> str:
    """Joins columns for a statement, and raises unless each is one column or expression."""
    listed = []
    for name in names:
        if not isinstance(name, str) or not (_COLUMN.fullmatch(name) or _is_expression(name)):
            raise errors.not_a_column_name(name)
        listed.append(name)
    return ", ".join(listed)


def _is_expression(text: str) -> bool:
    items = sql_list.split(text)
    return items is not None and len(items) == 1 and _OPERATION.search(text) is not None


def quoted(path: str) -> str:
    """Returns a path as an SQL string literal in which Spark does not substitute ${variable}."""
    escaped = path.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


def quoted_if_needed(name: str) -> str:
    """Quotes a part of a name for SQL if it contains unusual characters."""
    return name if re.fullmatch(r"(?a:[A-Za-z_]\w*)", name) else in_backticks(name)


def in_backticks(name: str) -> str:
    """Quotes a part of a name for SQL."""
    return "`" + name.replace("`", "``") + "`"
