"""Lists the files that a DataFrame reads, and determines the number of files in a copy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyzorder.fallback import failures, statistics
from pyzorder.fallback.layout import Group, partition_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class SourceFile:
    """A listed data file, and the key of the partition that contains its rows."""

    partition: str
    path: str
    size: int
    modified: int
    rows: int

    def path_below(self, root: str) -> str:
        """Returns the file's path relative to a table's folder."""
        return self.path.removeprefix(f"{root}/")


def source_files(rows: DataFrame, partitions: Sequence[str]) -> list[SourceFile]:
    """Returns the files that have rows, sorted by path."""
    from pyspark.sql import functions as F

    key = partition_key(partitions).alias("partition")
    counted = rows.groupBy(key, *statistics.file_key()).agg(F.expr("count(1)").alias("rows"))
    found = [
        SourceFile(
            row["partition"], statistics.local_path(row["path"]), row["size"], row["modified"],
            row["rows"],
        )
        for row in counted.collect()
    ]  # fmt: skip
    return sorted(found, key=lambda file: (file.path, file.partition))


def groups_of(files: Sequence[SourceFile], target_size: str) -> list[Group]:
    """Determines the number of new files for each partition.

    Args:
        target_size: the approximate size of the new files, such as 256m.

    Raises:
        ZOrderError: `target_size` is not a size.
    """
    wanted = _bytes(target_size)
    groups = []
    for key in sorted({file.partition for file in files}):
        own = [file for file in files if file.partition == key]
        rows = sum(file.rows for file in own)
        leaves = max(1, int(sum(file.size for file in own) / wanted + 0.5))
        groups.append(Group(key, rows, min(leaves, rows)))
    return groups


def _bytes(size: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", size.lower())
    if found is None or int(found[1]) == 0:
        raise failures.not_a_size(size)
    return int(found[1]) << 10 * (" kmgtp".index(found[2]) if found[2] else 0)
