"""The small table that the tests of stores share: what is done to it, and what must stay true."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support import scans
from tests.support.folders import Folder
from tests.support.tables import ids, metrics

ROWS = 40
ALL = list(range(ROWS))


class Table:
    """40 rows in four files, each with small and great ids; of two partitions, or of none."""

    def __init__(
        self, folder: Folder, provider: str = "parquet", partitioned: bool = False
    ) -> None:
        self.spark: SparkSession = folder.spark
        self.folder, self.provider, self.partitioned = folder, provider, partitioned
        self.name = f"{provider}.`{folder.url}`"
        self.append(0, ROWS)
        self.files = folder.data()

    def append(self, start: int, end: int) -> None:
        """Adds the rows with the ids from `start` to `end`, without it."""
        step = self.spark.range(start, end, 1, 4).selectExpr(
            f"(id - {start}) * 17 % {end - start} + {start} AS id"
        )
        rows = step.selectExpr("id", "id % 2 AS day").coalesce(4)
        self.write(rows, "append")

    def write(self, rows: DataFrame, mode: str) -> None:
        """Spark's own write."""
        writer = rows.write.mode(mode).format(self.provider)
        (writer.partitionBy("day") if self.partitioned else writer).save(self.folder.url)

    def write_partitions(self, rows: DataFrame) -> None:
        """Spark's own overwrite of the partitions that the rows are of. Several may do so at once,
        as they may not append: their committers share a folder then."""
        writer = rows.write.mode("overwrite").format(self.provider).partitionBy("day")
        writer.option("partitionOverwriteMode", "dynamic").save(self.folder.url)

    def rows(self) -> DataFrame:
        return self.spark.read.format(self.provider).load(self.folder.url)

    def ids(self) -> list[int]:
        return ids(self.rows())

    def plain_ids(self) -> list[int]:
        """As Spark without pyzorder would read it."""
        with scans.settings(self.spark, spark__sql__zorder__journal__overlay="false"):
            return self.ids()

    def opened(self, condition: str = "id = 7") -> set[str]:
        """The files that a lookup opens, and no fewer than plain Spark finds rows in."""
        found = self.rows().where(condition)
        with scans.plain(self.spark):
            rows = ids(self.rows().where(condition))
        assert ids(found) == rows
        return scans.opened(found)

    def optimize(self, files: int = 4) -> Any:
        """OPTIMIZE into about so many files; its metrics."""
        sizes = self.folder.everything()
        size = sum(sizes[name][0] for name in self.folder.data()) // files
        with scans.settings(self.spark, spark__sql__zorder__optimize__targetFileSize=str(size)):
            return metrics(self.spark.sql(f"OPTIMIZE {self.name} ZORDER BY (id)"))

    def run(self, statement: str) -> list[Any]:
        """A statement, `{}` in it standing for the table."""
        return list(self.spark.sql(statement.format(self.name)).collect())

    def vacuum(self) -> None:
        """Deletes everything that was replaced."""
        with scans.settings(self.spark, spark__sql__zorder__vacuum__retentionCheck="false"):
            self.run("VACUUM {} RETAIN 0 HOURS")

    def unindexed(self) -> int:
        """How many files the index does not know."""
        rows = self.run("DESCRIBE SKIPPING INDEX ON {}")
        return max(int(row["unindexed"]) for row in rows)
