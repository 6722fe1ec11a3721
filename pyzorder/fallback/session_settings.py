"""Settings of a session, those of its scans among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyzorder.index.read_settings import ReadSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def setting(spark: SparkSession, name: str) -> str:
    """A setting of the session, or its default; empty: Spark knows none."""
    try:
        return str(spark.conf.get(name))
    except Exception:
        return ""


def own_setting(
    spark: SparkSession, name: str, default: str = "", properties: Mapping[str, str] | None = None
) -> str:
    """pyzorder's setting `spark.sql.zorder.<name>`: what the session was given, else the property
    of the table, else `default`."""
    given = spark.conf.get(f"spark.sql.zorder.{name}", None)
    of_table = {key.lower(): value for key, value in (properties or {}).items()}
    return str(given or of_table.get(f"zorder.{name}".lower()) or default).strip()


@contextmanager
def changed_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Runs what is in the block under these settings; the session has its own again after it."""
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
    """Whether a setting of two values is on."""
    return setting(spark, name).strip().lower() == "true"


def read_settings(spark: SparkSession) -> ReadSettings:
    """The settings of a scan without options of its own."""
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
    """Columns are found by field id, not by name: no statistics are kept under this setting."""
    return is_on(spark, "spark.sql.parquet.fieldId.read.enabled")


def matches_positions(settings: ReadSettings) -> bool:
    """ORC columns are found by position: no statistics are kept under this setting."""
    return "orcpositions=true" in settings.structural.lower()


def _joined(pairs: list[tuple[str, str]]) -> str:
    return ";".join(f"{name}={value}" for name, value in pairs)


def _jvm_time_zone(spark: SparkSession) -> str:
    """The time zone of Spark's JVM; empty: it does not tell."""
    jvm: Any = getattr(spark, "_jvm", None) if hasattr(spark, "_jsparkSession") else None
    if jvm is not None:
        return str(jvm.java.util.TimeZone.getDefault().getID())
    try:
        text = spark.sql("SELECT reflect('java.util.TimeZone', 'getDefault')").collect()[0][0]
    except Exception:  # a server may forbid it: then no temporal bounds are used
        return ""
    found = re.search(r'[\[,]id="?([^",\]]+)', str(text))
    return found[1] if found else ""


def _of_hadoop(spark: SparkSession, key: str) -> str:
    """A key of Hadoop's: Spark lays session settings over the context's, which only a JVM tells."""
    own = setting(spark, key)
    if own or not hasattr(spark, "_jsparkSession"):
        return own
    context: Any = spark.sparkContext
    return str(context._jsc.hadoopConfiguration().get(key) or "")
