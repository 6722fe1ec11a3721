"""Settings of a session, including those that affect its scans."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyzorder.index.read_settings import ReadSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def setting(spark: SparkSession, name: str) -> str:
    """Returns a setting's value or default, or an empty string if Spark has no such setting."""
    try:
        return str(spark.conf.get(name))
    except Exception:
        return ""


def own_setting(
    spark: SparkSession, name: str, default: str = "", properties: Mapping[str, str] | None = None
) -> str:
    """Returns pyzorder's setting `spark.sql.zorder.<name>`.

    The session's setting overrides the table's property, which overrides `default`.
    """
    given = spark.conf.get(f"spark.sql.zorder.{name}", None)
    of_table = {key.lower(): value for key, value in (properties or {}).items()}
    return str(given or of_table.get(f"zorder.{name}".lower()) or default).strip()


@contextmanager
def changed_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Changes settings of the session within a `with` block, and restores them afterwards."""
    before = {name: spark.conf.get(name, None) for name in values}
    try:
        for name, value in values.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def is_on(spark: SparkSession, name: str) -> bool:
    """Whether a boolean setting is on."""
    return setting(spark, name).strip().lower() == "true"


def read_settings(spark: SparkSession) -> ReadSettings:
    """Returns the read settings of scans that have no options."""
    structural = [
        ("caseSensitive", str(is_on(spark, "spark.sql.caseSensitive")).lower()),
        ("fieldIds", str(matches_field_ids(spark)).lower()),
        *(
            (name, str(is_on(spark, key)).lower())
            for name, key in (
                ("binaryAsString", "spark.sql.parquet.binaryAsString"),
                ("int96AsTimestamp", "spark.sql.parquet.int96AsTimestamp"),
                ("nanosAsLong", "spark.sql.legacy.parquet.nanosAsLong"),
                ("inferTimestampNtz", "spark.sql.parquet.inferTimestampNTZ.enabled"),
            )
        ),
        ("orcImplementation", setting(spark, "spark.sql.orc.impl")),
        ("orcPositions", _of_hadoop(spark, "orc.force.positional.evolution")),
    ]
    jvm_zone = _jvm_time_zone(spark)
    temporal = [
        ("timeZone", setting(spark, "spark.sql.session.timeZone")),
        ("jvmTimeZone", jvm_zone),
        (
            "int96Conversion",
            str(is_on(spark, "spark.sql.parquet.int96TimestampConversion")).lower(),
        ),
        ("datetimeRebase", setting(spark, "spark.sql.parquet.datetimeRebaseModeInRead").upper()),
        ("int96Rebase", setting(spark, "spark.sql.parquet.int96RebaseModeInRead").upper()),
        ("orcProleptic", _of_hadoop(spark, "orc.proleptic.gregorian.default")),
    ]
    return ReadSettings(_joined(structural), _joined(temporal) if jvm_zone else None)


def matches_field_ids(spark: SparkSession) -> bool:
    """Whether columns are matched by field id. If so, no statistics are kept."""
    return is_on(spark, "spark.sql.parquet.fieldId.read.enabled")


def matches_positions(settings: ReadSettings) -> bool:
    """Whether ORC columns are matched by position. If so, no statistics are kept."""
    return "orcpositions=true" in settings.structural.lower()


def _joined(pairs: list[tuple[str, str]]) -> str:
    return ";".join(f"{name}={value}" for name, value in pairs)


def _jvm_time_zone(spark: SparkSession) -> str:
    """Returns the time zone of Spark's JVM, or an empty string if it cannot be determined."""
    jvm: Any = getattr(spark, "_jvm", None) if hasattr(spark, "_jsparkSession") else None
    if jvm is not None:
        return str(jvm.java.util.TimeZone.getDefault().getID())
    try:
        text = spark.sql("SELECT reflect('java.util.TimeZone', 'getDefault')").collect()[0][0]
    except Exception:  # a server may forbid reflect(); if so, temporal bounds are not used
        return ""
    found = re.search(r'[\[,]id="?([^",\]]+)', str(text))
    return found[1] if found else ""


def _of_hadoop(spark: SparkSession, key: str) -> str:
    """Returns a Hadoop setting.

    The session's setting overrides the context's setting. The context's setting can be read only
    with a JVM.
    """
    own = setting(spark, key)
    if own or not hasattr(spark, "_jsparkSession"):
        return own
    context: Any = spark.sparkContext
    return str(context._jsc.hadoopConfiguration().get(key) or "")
