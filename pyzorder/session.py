"""The way in: puts pyzorder's jar and extension into a Spark session that is about to start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.pyzorder.ZOrderExtensions"


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds the jar and the extension to `builder`, keeping what is set already."""
    jar = next((Path(__file__).parent / "jars").glob("*.jar"))
    return builder.config("spark.jars", str(jar)).config("spark.sql.extensions", EXTENSION)
