"""Which Sparks pyzorder is built for, and the exact name of the jar for each."""

from __future__ import annotations

import configparser
from pathlib import Path

from pyzorder._version import __version__

PACKAGE = Path(__file__).parent


def table() -> configparser.ConfigParser:
    """spark_versions.ini: one section a Spark minor version."""
    parsed = configparser.ConfigParser()
    parsed.read(PACKAGE / "spark_versions.ini", encoding="utf-8")
    return parsed


def minor(version: str) -> str:
    """The minor version of a Spark: "4.3" of "4.3.0", also of "4.3.0.dev1" and vendors' names."""
    return ".".join(version.split(".")[:2])


def supported() -> list[str]:
    """The minor versions that pyzorder has jars for, oldest first."""
    return table().sections()


def jar_path(spark: str) -> Path:
    """Where the jar for one of the supported minor versions is, if the package holds it."""
    scala = table()[spark]["scala"]
    return PACKAGE / "jars" / f"pyzorder-spark-{spark}_{scala}-{__version__}.jar"
