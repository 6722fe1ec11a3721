"""Finds columns in data files that a copy would lose, because the table does not declare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyzorder.fallback.session_settings import is_on

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def undeclared(
    spark: SparkSession, paths: Sequence[str], format: str, declared: StructType
) -> list[str]:
    """Returns the columns and fields that exist in files but not in the table's schema.

    In Hive's ORC files, columns may be named by position: `_col0`, `_col1` and so on. Such a column
    is undeclared only if its position is beyond the end of the schema.
    """
    key = str if is_on(spark, "spark.sql.caseSensitive") else str.lower
    schemas = _schemas(spark, paths, format)
    return list(dict.fromkeys(name for s in schemas for name in _lost_of(s, declared, key)))


def _schemas(spark: SparkSession, paths: Sequence[str], format: str) -> Iterator[StructType]:
    """Yields the merged schema of all files, or several schemas if types cannot be merged."""
    reader = spark.read.options(mergeSchema="true", recursiveFileLookup="true").format(format)
    try:
        yield reader.load([_no_glob(path) for path in paths]).schema
    except Exception:
        if len(paths) == 1:
            raise
        half = len(paths) // 2
        yield from _schemas(spark, paths[:half], format)
        yield from _schemas(spark, paths[half:], format)


def _no_glob(path: str) -> str:
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _lost_of(schema: StructType, declared: StructType, key: Callable[[str], str]) -> Iterator[str]:
    names = schema.names
    if names and all(re.fullmatch(r"_col\d+", name) for name in names):
        yield from names[len(declared.fields) :]
    else:
        yield from _lost("", schema, declared, key)


def _lost(prefix: str, stored: Any, known: Any, key: Callable[[str], str]) -> Iterator[str]:
    """Yields the fields of the stored type that the known type lacks."""
    kinds = stored.typeName(), known.typeName()
    if kinds == ("struct", "struct"):
        declared = {key(field.name): field.dataType for field in known.fields}
        for field in stored.fields:
            # If two names differ only in case, a copy would lose the second field.
            below = declared.pop(key(field.name), None)
            if below is None:
                yield prefix + field.name
            else:
                yield from _lost(f"{prefix}{field.name}.", field.dataType, below, key)
    elif kinds == ("map", "map"):
        yield from _lost(f"{prefix}key.", stored.keyType, known.keyType, key)
        yield from _lost(f"{prefix}value.", stored.valueType, known.valueType, key)
    elif kinds == ("array", "array"):
        yield from _lost(f"{prefix}element.", stored.elementType, known.elementType, key)
