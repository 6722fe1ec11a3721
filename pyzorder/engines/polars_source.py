"""Opens a table as a Polars LazyFrame, using Polars' interface for IO plugins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source
from sqlglot import exp

from pyzorder.engines import failures
from pyzorder.engines.polars_filters import conditions_of
from pyzorder.engines.selection import select_files
from pyzorder.engines.tables import Table, check_schema, open_table, opening, place_of
from pyzorder.index import VisibleFile
from pyzorder.text.durations import seconds_of

#: The maximum total size in bytes of files that are read together. Because of this limit, a query
#: that needs only a few rows can stop before all files have been read.
_TOGETHER = 256 << 20

#: Compared with the first file, a file may have columns of narrower types, lack fields, or have
#: additional fields.
_CASTS = pl.ScanCastOptions(
    integer_cast="upcast",
    float_cast="upcast",
    datetime_cast="nanosecond-downcast",
    missing_struct_fields="insert",
    extra_struct_fields="ignore",
)


@opening
def open_frame(
    path: str | os.PathLike[str], max_staleness: str | float | timedelta | None
) -> pl.LazyFrame:
    """Opens a table. The parameters are those of `pyzorder.scan_polars`.

    Raises:
        ZOrderError: see `pyzorder.scan_polars`.
    """
    table = open_table(path, None, seconds_of(max_staleness, "staleness"))
    if not table.files:
        raise failures.no_files(table.location)
    if table.files[0].path.endswith(".orc"):
        raise failures.orc_for_polars(table.location)
    source = _Source(table)
    try:
        return register_io_source(source.read, schema=source.schema, is_pure=True)
    except pl.exceptions.PolarsError as failure:  # for example, a decimal has too many digits
        raise failures.unreadable(table.files[0].path, failures.first_line(failure)) from failure


class _Source:
    """Reads a table's files for Polars."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._own = self._columns_of(table.files[0])
        partitions = {
            column.name: pl.Series([], dtype=_of_arrow(column.arrow_type)).dtype
            for column in table.partitions
        }
        taken = {name.lower(): name for name in partitions}
        #: The first file's columns, and the partition columns, which replace columns with the same
        #: name.
        self.schema: dict[str, Any] = {}
        for name, data_type in self._own.items():
            named = taken.get(name.lower())
            self.schema[named or name] = partitions[named] if named else data_type
        self.schema |= {n: t for n, t in partitions.items() if n not in self.schema}
        self._own = {n: t for n, t in self._own.items() if n.lower() not in taken}

    def _columns_of(self, file: VisibleFile) -> dict[str, Any]:
        try:
            check_schema(self._table, file)
            return dict(pl.scan_parquet(place_of(file), glob=False).collect_schema())
        except (
            OSError, pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException
        ) as failure:  # fmt: skip
            raise failures.unreadable(file.path, failures.first_line(failure)) from failure

    def read(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yields the rows that Polars requests.

        The parameters are those that Polars passes to a source.
        """
        kept = [True] * len(self._table.files)
        # With `n_rows`, skipping files would change which rows come first.
        if predicate is not None and n_rows is None:
            conditions = [
                condition
                for condition in conditions_of(predicate)
                if self._is_ordered_alike(condition) and not self._may_match_null(condition)
            ]
            kept = list(select_files(self._table, conditions).kept)
        shown = with_columns or list(self.schema)
        used = shown if predicate is None else [*shown, *predicate.meta.root_names()]
        left = n_rows
        for folder, files in self._groups(kept):
            rows = self._scan(folder, files, trust_footers=not self._has_floats(predicate))
            if left is not None:  # the filter applies to the first `n_rows` rows
                first = rows.select(list(dict.fromkeys(used))).head(left).collect()
                left -= first.height
                rows = first.lazy()
            if predicate is not None:
                rows = rows.filter(predicate)
            yield rows.select(shown).collect()
            if left == 0:
                return

    def _is_ordered_alike(self, condition: exp.Expression) -> bool:
        """Whether Polars orders and converts the values in a condition's columns as Spark does."""
        types = [self.schema.get(c.parts[0].name) for c in condition.find_all(exp.Column)]
        converted = [
            self.schema.get(column.parts[0].name)
            for cast in condition.find_all(exp.Cast)
            for column in cast.find_all(exp.Column)
        ]
        return all(t is not None and _is_ordered(t) for t in types) and all(
            t is not None and (t.is_integer() or t.is_float()) for t in converted
        )

    def _may_match_null(self, condition: exp.Expression) -> bool:
        """Whether a condition may be TRUE for nulls in a column of the files.

        Lookups in the index ignore the case of names, but Polars reads nulls from a file in which
        the column's name is spelled differently. For such a file, the index describes values that
        Polars does not read.
        """
        partitions = {column.name for column in self._table.partitions}

        def is_safe(node: exp.Expression) -> bool:
            is_negated = sum(isinstance(above, exp.Not) for above in _ancestors(node)) % 2 == 1
            if isinstance(node, exp.Is):
                return is_negated
            sides = (node.this, node.expression)
            constants = [side for side in sides if side.find(exp.Column) is None]
            return not is_negated and any(side.find(exp.Null) is None for side in constants)

        return any(
            not is_safe(node) and column.name not in partitions
            for node in condition.find_all(exp.Is, exp.NullSafeEQ)
            for column in node.find_all(exp.Column)
        )

    def _groups(self, kept: list[bool]) -> Iterator[tuple[str, list[VisibleFile]]]:
        """Yields groups of files that are read together.

        All files of a group belong to one partition, and their total size is limited. If no file is
        kept, yields one empty group, so that Polars learns the types of the columns.
        """
        group: list[VisibleFile] = []
        current, size = "", 0
        for file, folder, is_kept in zip(self._table.files, self._table.folders, kept, strict=True):
            if not is_kept:
                continue
            if group and (folder != current or size + file.size > _TOGETHER):
                yield current, group
                group, size = [], 0
            current = folder
            group.append(file)
            size += file.size
        yield current, group

    def _has_floats(self, predicate: pl.Expr | None) -> bool:
        """Whether a filter refers to columns whose minima and maxima in footers ignore NaN."""
        names = [] if predicate is None else predicate.meta.root_names()
        found = (self.schema.get(name, pl.Null()) for name in names)
        return any(t.is_float() or t.is_nested() for t in found)

    def _scan(self, folder: str, files: list[VisibleFile], trust_footers: bool) -> pl.LazyFrame:
        if not files:
            return pl.LazyFrame(schema=self.schema)
        rows = pl.scan_parquet(
            [place_of(file) for file in files],
            glob=False,
            hive_partitioning=False,
            use_statistics=trust_footers,
            schema=self._own,
            missing_columns="insert",
            extra_columns="ignore",
            cast_options=_CASTS,
        )
        values = [
            pl.lit(column.values[folder], dtype=self.schema[column.name]).alias(column.name)
            for column in self._table.partitions
        ]
        return rows.with_columns(values).select(list(self.schema))


def _ancestors(node: exp.Expression) -> Iterator[exp.Expression]:
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def _is_ordered(data_type: Any) -> bool:
    """Whether Polars compares values of a type in their natural order. Enums are ordered
    differently."""
    if isinstance(data_type, pl.Struct):
        return all(_is_ordered(field.dtype) for field in data_type.fields)
    if isinstance(data_type, pl.Datetime):
        return data_type.time_unit == "us"
    plain = (pl.Boolean, pl.String, pl.Binary, pl.Date)
    return bool(data_type.is_numeric() or data_type in plain)


def _of_arrow(data_type: Any) -> Any:
    import pyarrow as pa

    return pl.from_arrow(pa.array([], data_type)).dtype  # type: ignore[union-attr]
