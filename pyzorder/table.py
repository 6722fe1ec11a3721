"""ZOrderTable: OPTIMIZE from Python, with the method names that users of DeltaTable know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyzorder import errors
from pyzorder.session import check_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

#: A column's name as SQL writes it: a, a.b, `odd name`.`and field`.
_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_COLUMN = re.compile(rf"\s*{_PART}(?:\s*\.\s*{_PART})*\s*")


class ZOrderTable:
    """A plain Parquet or ORC table, of the catalog or under a path; works with Spark Connect."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        """`target` is the table as SQL names it; use `forName` or `forPath`."""
        self._spark = spark
        self._target = target

    @classmethod
    def forName(cls, spark: SparkSession, name: str) -> ZOrderTable:
        """A table of the catalog, named as in SQL: "sales", "db.sales", "`odd name`".

        Raises:
            AnalysisException: there is no such table.
        """
        check_session(spark)
        _ = spark.table(name).schema  # a Connect client looks names up no sooner
        return cls(spark, name)

    @classmethod
    def forPath(cls, spark: SparkSession, path: str) -> ZOrderTable:
        """The table in a folder, as `spark.read.parquet(path)` or `.orc(path)` would read it."""
        check_session(spark)
        return cls(spark, quoted(path))

    def optimize(self) -> OptimizeBuilder:
        """Begins an OPTIMIZE; nothing runs before one of its execute methods."""
        return OptimizeBuilder(self._spark, self._target)

    def createSkippingIndex(self, *columns: str) -> DataFrame:
        """Collects statistics of the columns (none: all that can have them), without a rewrite."""
        listed = f" ({_column_list(columns)})" if columns else ""
        return self._spark.sql(f"CREATE SKIPPING INDEX IF NOT EXISTS ON {self._target}{listed}")

    def refreshSkippingIndex(self) -> DataFrame:
        """Brings the statistics up to date with the table's files."""
        return self._spark.sql(f"REFRESH SKIPPING INDEX ON {self._target}")

    def describeSkippingIndex(self) -> DataFrame:
        """The index's health, one row a column."""
        return self._spark.sql(f"DESCRIBE SKIPPING INDEX ON {self._target}")

    def dropSkippingIndex(self) -> DataFrame:
        """Removes the statistics; the table's files stay as they are."""
        return self._spark.sql(f"DROP SKIPPING INDEX IF EXISTS ON {self._target}")

    def vacuum(self, retentionHours: int | None = None, dryRun: bool = False) -> DataFrame:
        """Deletes what OPTIMIZE runs replaced longer ago than so many hours, and returns the files.

        `retentionHours` None: as long as `spark.sql.zorder.vacuum.retentionHours` says.
        """
        if retentionHours is not None and type(retentionHours) is not int:
            raise errors.not_hours(retentionHours)
        retain = f" RETAIN {retentionHours} HOURS" if retentionHours is not None else ""
        dry_run = " DRY RUN" if dryRun else ""
        return self._spark.sql(f"VACUUM {self._target}{retain}{dry_run}")

    def restoreBeforeOptimize(self) -> DataFrame:
        """Puts the files back that the last OPTIMIZE replaced; what was added since stays."""
        return self._spark.sql(f"RESTORE {self._target} TO BEFORE OPTIMIZE")

    def history(self) -> DataFrame:
        """The runs of OPTIMIZE, RESTORE and VACUUM, one a row, the first one first."""
        return self._spark.sql(f"SELECT * FROM optimize_history({quoted(self._target)})")

    def __repr__(self) -> str:
        return f"ZOrderTable({self._target})"


class OptimizeBuilder:
    """One OPTIMIZE in the making: which partitions, and how."""

    def __init__(self, spark: SparkSession, target: str) -> None:
        self._spark = spark
        self._target = target
        self._where: str | None = None
        self._full = False
        self._dry_run = False

    def where(self, partition_predicate: str) -> OptimizeBuilder:
        """Only the partitions for which this SQL condition on partition columns holds."""
        if self._where is not None:
            raise errors.where_twice()
        self._where = partition_predicate
        return self

    def full(self) -> OptimizeBuilder:
        """Rewrites also what is clustered so already, and even where lookups get slower."""
        self._full = True
        return self

    def dryRun(self) -> OptimizeBuilder:
        """Changes nothing; the metrics say what would happen."""
        self._dry_run = True
        return self

    def executeZOrderBy(self, *columns: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Clusters the files by the columns, named as in SQL; returns the metrics."""
        names = [n for c in columns for n in (c if isinstance(c, (list, tuple)) else [c])]
        if not names:
            raise errors.no_columns()
        return self._spark.sql(self._statement(f" ZORDER BY ({_column_list(names)})"))

    def executeCompaction(self) -> DataFrame:
        """OPTIMIZE without ZORDER BY: clusters as the table declares, else as the last OPTIMIZE
        did, else merges small files."""
        return self._spark.sql(self._statement(""))

    def _statement(self, z_order: str) -> str:
        full = " FULL" if self._full else ""
        # The condition ends with its line, so that a comment in it hides nothing that follows.
        where = f" WHERE {self._where}\n" if self._where is not None else ""
        dry_run = " DRY RUN" if self._dry_run else ""
        return f"OPTIMIZE {self._target}{full}{where}{z_order}{dry_run}"


def _column_list(names: Iterable[object]) -> str:
    """Names of columns for a statement; an error for text that is none, or more than one."""
    listed = []
    for name in names:
        if not isinstance(name, str) or not _COLUMN.fullmatch(name):
            raise errors.not_a_column_name(name)
        listed.append(name)
    return ", ".join(listed)


def quoted(path: str) -> str:
    """A path as an SQL string literal, in which Spark replaces no ${variable}."""
    escaped = path.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"
