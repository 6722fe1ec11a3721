"""Helpers that build an index and compare it with the rows that Spark reads from the files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType


def _api(spark: SparkSession) -> Any:
    return spark._jvm.io.pyzorder.api.IndexApi


def _frame(spark: SparkSession, java: Any) -> DataFrame:
    return DataFrame(java, spark)


def schema(spark: SparkSession, ddl: str) -> StructType:
    """Parses a column list such as `a int, b string`."""
    return spark.createDataFrame([], ddl).schema


def build(
    spark: SparkSession,
    path: Path,
    fmt: str,
    schema: StructType | None = None,
    options: Mapping[str, str] | None = None,
    columns: Sequence[Sequence[str]] = (),
) -> int:
    """Indexes all files in a folder. By default, uses the schema that Spark infers."""
    given = dict(options or {})
    if schema is None:
        schema = spark.read.options(**given).format(fmt).load(str(path)).schema
    return int(
        _api(spark).build(
            spark._jsparkSession, str(path), fmt, schema.json(), given, [list(c) for c in columns]
        )
    )


def remove(spark: SparkSession, path: Path, files: Sequence[str]) -> int:
    """Publishes a snapshot without entries for the given files."""
    return int(_api(spark).remove(spark._jsparkSession, str(path), list(files)))


def drop(spark: SparkSession, path: Path) -> None:
    """Removes the index."""
    _api(spark).drop(spark._jsparkSession, str(path))


def version(spark: SparkSession, path: Path) -> int:
    """The current version of the index, or 0 if there is none."""
    return int(_api(spark).version(spark._jsparkSession, str(path)))


def table(spark: SparkSession, path: Path) -> list[Row]:
    """The rows of the index table, ordered by path. Spark reads them from the snapshot file."""
    return sorted(
        _frame(spark, _api(spark).table(spark._jsparkSession, str(path))).collect(),
        key=lambda row: row["path"],
    )


def loaded_frame(spark: SparkSession, path: Path) -> DataFrame:
    """The rows of the index table, read back from the driver's arrays."""
    return _frame(spark, _api(spark).loaded(spark._jsparkSession, str(path)))


def loaded(spark: SparkSession, path: Path) -> list[Row]:
    """The rows of the index table, ordered by path. They come from the driver's arrays."""
    return sorted(loaded_frame(spark, path).collect(), key=lambda row: row["path"])


def check_sound(
    spark: SparkSession,
    path: Path,
    fmt: str,
    schema: StructType | None = None,
    options: Mapping[str, str] | None = None,
) -> dict[str, Row]:
    """Asserts that the index agrees with the rows that Spark reads from the files. Returns the
    entries by path."""
    given = dict(options or {})
    if schema is None:
        schema = spark.read.options(**given).format(fmt).load(str(path)).schema
    entries = {row["path"]: row for row in loaded(spark, path)}
    for name, entry in entries.items():
        place = name if name.startswith("file:") else str(path / name)
        frame = spark.read.schema(schema).options(**given).format(fmt).load(place)
        rows = frame.collect()
        assert entry["num_records"] == len(rows), name
        for field in entry.asDict():
            if field.endswith("_num_nulls"):
                column = field.removesuffix("_num_nulls")
                check_column(name, column, entry, [value_of(row, column) for row in rows])
    return entries


def value_of(row: Row, column: str) -> Any:
    """The value of a column or struct field in a row."""
    value: Any = row
    for part in column.split("."):
        value = None if value is None else value[part]
    return value


def check_column(file: str, column: str, entry: Row, values: list[Any]) -> None:
    """Checks an entry's statistics for a column against the column's values."""
    said = f"{file}: {column}: {entry}"
    present = [v for v in values if v is not None]
    plain = [v for v in present if not (isinstance(v, float) and math.isnan(v))]
    least, greatest = entry[f"{column}_minValue"], entry[f"{column}_maxValue"]
    assert (least is None) == (greatest is None), said
    if least is not None:
        assert plain, said
        assert all(least <= v <= greatest for v in plain), said
        if entry[f"{column}_exact"]:
            assert least in plain and greatest in plain, said
    if entry[f"{column}_num_nulls"] is not None:
        assert entry[f"{column}_num_nulls"] == len(values) - len(present), said
    if entry[f"{column}_empty"]:
        assert not plain, said
    if f"{column}_nan_seen" in entry and not entry[f"{column}_nan_seen"]:
        assert len(plain) == len(present), said


def known(entry: Row, column: str) -> bool:
    """Whether the entry has bounds for the column. Also true if it records that the column has no
    values."""
    return entry[f"{column}_minValue"] is not None or entry[f"{column}_empty"]
