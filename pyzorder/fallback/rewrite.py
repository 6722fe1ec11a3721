"""Writes the rows of files anew, laid out by the clustering columns, below a run's staging."""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyzorder.fallback import statistics
from pyzorder.fallback.footers import Footer, commonest_codec, timestamp_type
from pyzorder.fallback.index_store import FileEntry
from pyzorder.fallback.layout import LEAF, Group, laid_out
from pyzorder.fallback.own_files import make_folder, remove
from pyzorder.fallback.read_settings import changed_settings, read_settings
from pyzorder.fallback.run_records import FileRef
from pyzorder.fallback.selection import SkippedFile, among, spelled
from pyzorder.fallback.snapshots import IndexedColumn
from pyzorder.fallback.stores import TableFolder
from pyzorder.fallback.tables import Table
from pyzorder.fallback.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: Bytes of a row group: several a file, each of them narrow.
ROW_GROUP = 32 << 20

#: Settings that rows are rewritten under: nothing may be skipped, padded or rebased.
REWRITING = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.zorder.skipping.enabled": "false",
}


class Rewrite:
    """The new files of one run."""

    def __init__(
        self, spark: SparkSession, table: Table, writer: Writer, rows: DataFrame,
        clustering: Sequence[IndexedColumn], indexed: Sequence[IndexedColumn], data: Sequence[str],
    ) -> None:  # fmt: skip
        """
        rows        of the table
        clustering  columns to cluster by
        indexed     columns to collect statistics of
        data        names of the columns that files hold
        """
        self._spark, self._table, self._writer = spark, table, writer
        self._rows, self._data = rows, data
        self._clustering, self._indexed = clustering, indexed

    def run(
        self, files: Collection[FileRef], groups: Sequence[Group], footers: Iterable[Footer]
    ) -> list[FileEntry]:
        """Writes what the files hold, and says what the index is to know of the new ones.

        `groups` are the partitions that the files are of; the new files lie where the writer has
        them `staged`.
        """
        folder, known = self._writer.folder, list(footers)
        out = f"{folder.zorder}/_staging/_{self._writer.run}/_out"
        make_folder(os.path.dirname(out))
        ordered, placement = laid_out(
            self._rows.where(_among(folder, files)), _group(folder, groups), groups,
            self._clustering, self._data,
        )  # fmt: skip
        timestamps = timestamp_type(known)
        as_they_are = {"spark.sql.parquet.outputTimestampType": timestamps} if timestamps else {}
        with changed_settings(self._spark, as_they_are):
            writer = ordered.write.partitionBy(LEAF).format(self._table.format)
            writer.options(**self._options(known)).save(out)
        found = statistics.collect(self._fresh(out), self._indexed)
        staged = statistics.entries(TableFolder(out), found, read_settings(self._spark))
        return [self._stage(out, entry, groups, placement.first_leaf) for entry in staged]

    def _fresh(self, out: str) -> DataFrame:
        """The rows that were written, as the table's schema reads them."""
        from pyspark.sql.types import StructField, StructType

        own = self._rows.schema
        schema = StructType([StructField(n, own[n].dataType, True) for n in self._data])
        return self._spark.read.schema(schema).format(self._table.format).load(out)

    def _options(self, footers: Sequence[Footer]) -> dict[str, str]:
        codec = commonest_codec(footers)
        options = {"maxRecordsPerFile": "0", "parquet.block.size": str(ROW_GROUP)}
        return {**options, "compression": codec} if codec else options

    def _stage(
        self, out: str, entry: FileEntry, groups: Sequence[Group], first_leaf: Any
    ) -> FileEntry:
        """Gives a file that Spark has written its place among the staged ones."""
        leaf_folder, _, written = entry.path.rpartition("/")
        leaf = int(leaf_folder.rpartition("=")[2])
        folder = groups[int(first_leaf.searchsorted(leaf, side="right")) - 1].folder
        name = f"part-{leaf:05d}-{uuid.uuid4()}.{written.partition('.')[2]}"
        relative = f"{folder}/{name}" if folder else name
        place = self._writer.staged(relative)
        make_folder(os.path.dirname(place))
        source = f"{out}/{entry.path}"
        remove(os.path.join(os.path.dirname(source), f".{written}.crc"))
        os.rename(source, place)
        return replace(entry, path=relative, clustered_by=tuple(c.name for c in self._clustering))


def _group(folder: TableFolder, groups: Sequence[Group]) -> Column:
    """The number of a row's group, by the folder of its file."""
    from pyspark.sql import functions as F

    if len(groups) == 1:
        return F.lit(0)
    paths = [f"{folder.root}/{g.folder}".rstrip("/") for g in groups]
    address = F.expr("regexp_replace(_metadata.file_path, '^file:/+', '/')")
    around = F.regexp_replace(address, "/[^/]*$", "")
    folders = F.array(*[F.lit(spelled(path)) for path in paths])
    # Spark 3.5's own `F.array_position` takes no column as the second argument.
    number = F.call_function("array_position", folders, around)
    return (number - 1).cast("int")


def _among(folder: TableFolder, files: Collection[FileRef]) -> str:
    """A condition that holds for the rows of these files."""
    return among(SkippedFile(folder.resolve(ref.path), ref.size, ref.modified) for ref in files)
