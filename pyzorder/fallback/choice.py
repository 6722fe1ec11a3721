"""Which files of a table an OPTIMIZE rewrites: whole partitions, as they are now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyzorder.fallback import failures, statistics
from pyzorder.fallback.layout import Group
from pyzorder.fallback.run_records import FileRef
from pyzorder.fallback.snapshots import Snapshot
from pyzorder.fallback.stores import TableFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def of_partitions(
    spark: SparkSession, rows: DataFrame, where: str, partitions: Sequence[str]
) -> DataFrame:
    """The rows of some partitions.

    Raises AnalysisException: the condition speaks of other columns than `partitions`.
    """
    from pyspark.sql import functions as F

    columns = [F.col(f"`{name.replace('`', '``')}`") for name in partitions]
    only = spark.createDataFrame([], rows.select(*columns).schema)
    _ = only.where(where).schema
    return rows.where(where)


def files_of(rows: DataFrame, folder: TableFolder) -> dict[FileRef, int]:
    """The files that rows are read of, each with its number of rows.

    Raises ZOrderError: some lie outside of the table's folder.
    """
    from pyspark.sql import functions as F

    counted = rows.groupBy(*statistics.file_key()).agg(F.expr("count(1)").alias("rows"))
    found = {}
    for row in counted.collect():
        path = statistics.local_path(row["path"])
        if not path.startswith(folder.root + "/"):
            raise failures.refused(folder.root, f"has files elsewhere, such as {path}")
        relative = path.removeprefix(folder.root + "/")
        found[FileRef(relative, row["size"], row["modified"])] = row["rows"]
    return found


def unclustered(
    files: Mapping[FileRef, int], index: Snapshot | None, clustered_by: Sequence[str]
) -> dict[FileRef, int]:
    """The files but those of folders whose every file is clustered so."""
    if index is None:
        return dict(files)
    known = index.rows.select(["path", "size", "modification_time", "clustered_by"])
    done = {
        FileRef(row["path"], row["size"], row["modification_time"])
        for row in known.to_pylist()
        if row["clustered_by"] == list(clustered_by)
    }
    folders = {ref.folder for ref in files if ref not in done}
    return {ref: rows for ref, rows in files.items() if ref.folder in folders}


def groups_of(files: Mapping[FileRef, int], target_size: str) -> list[Group]:
    """Partition by partition, how many files of about a size, such as 256m, to make."""
    wanted = _bytes(target_size)
    groups = []
    for folder in sorted({ref.folder for ref in files}):
        own = [ref for ref in files if ref.folder == folder]
        rows = sum(files[ref] for ref in own)
        leaves = max(1, int(sum(ref.size for ref in own) / wanted + 0.5))
        groups.append(Group(folder, rows, min(leaves, rows)))
    return groups


def _bytes(size: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", size.lower())
    if found is None or int(found[1]) == 0:
        raise failures.refused(size, "is no size such as 256m")
    return int(found[1]) << 10 * (" kmgtp".index(found[2]) if found[2] else 0)
