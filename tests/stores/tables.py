"""A small table for the store tests, with methods that change and check the table."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support import scans
from tests.support.folders import Folder
from tests.support.tables import ids, metrics

ROWS = 40
ALL = list(range(ROWS))


class Table:
    """A table of 40 rows in four files. Each file contains both low and high ids. The table may
    have two partitions."""

    def __init__(
        self, folder: Folder, provider: str = "parquet", partitioned: bool = False
    ) -> None:
        self.spark: SparkSession = folder.spark
        self.folder, self.provider, self.partitioned = folder, provider, partitioned
        self.name = f"{provider}.`{folder.url}`"
        self.append(0, ROWS)
        self.files = folder.data()

    def append(self, start: int, end: int) -> None:
        """Appends the rows with ids from `start` up to but not including `end`."""
        step = self.spark.range(start, end, 1, 4).selectExpr(
            f"(id - {start}) * 17 % {end - start} + {start} AS id"
        )
        rows = step.selectExpr("id", "id % 2 AS day").coalesce(4)
        self.write(rows, "append")

    def write(self, rows: DataFrame, mode: str) -> None:
        """Writes rows with Spark."""
        writer = rows.write.mode(mode).format(self.provider)
        (writer.partitionBy("day") if self.partitioned else writer).save(self.folder.url)

    def write_partitions(self, rows: DataFrame) -> None:
        """Uses Spark to overwrite the partitions to which the rows belong. Several of these writes
        may run at the same time. Appends must not run at the same time, because their committers
        share a folder."""
        writer = rows.write.mode("overwrite").format(self.provider).partitionBy("day")
        writer.option("partitionOverwriteMode", "dynamic").save(self.folder.url)

    def rows(self) -> DataFrame:
        return self.spark.read.format(self.provider).load(self.folder.url)

    def ids(self) -> list[int]:
        return ids(self.rows())

    def plain_ids(self) -> list[int]:
        """The ids that Spark reads without pyzorder."""
        with scans.settings(self.spark, spark__sql__zorder__journal__overlay="false"):
            return self.ids()

    def opened(self, condition: str = "id = 7") -> set[str]:
        """Returns the files that a lookup opens, and asserts that the lookup returns the same rows
        as plain Spark."""
        found = self.rows().where(condition)
        with scans.plain(self.spark):
            rows = ids(self.rows().where(condition))
        assert ids(found) == rows
        return scans.opened(found)

    def optimize(self, files: int = 4) -> Any:
        """Runs OPTIMIZE with a target of about `files` files, and returns its metrics."""
        sizes = self.folder.everything()
        size = sum(sizes[name][0] for name in self.folder.data()) // files
        with scans.settings(self.spark, spark__sql__zorder__optimize__targetFileSize=str(size)):
            return metrics(self.spark.sql(f"OPTIMIZE {self.name} ZORDER BY (id)"))

    def run(self, statement: str) -> list[Any]:
        """Runs a statement in which `{}` stands for the table."""
        return list(self.spark.sql(statement.format(self.name)).collect())

    def vacuum(self) -> None:
        """Deletes all replaced files."""
        with scans.settings(self.spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            self.run("VACUUM {} RETAIN 0 HOURS")

    def unindexed(self) -> int:
        """The number of files without an index entry."""
        rows = self.run("DESCRIBE SKIPPING INDEX ON {}")
        return max(int(row["unindexed"]) for row in rows)
