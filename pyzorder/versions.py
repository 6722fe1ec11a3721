"""The versions of Spark that pyzorder is built for, and the exact name of the jar for each."""

from __future__ import annotations

import configparser
import os
import shutil
from pathlib import Path

from pyzorder._version import __version__

PACKAGE = Path(__file__).parent


def table() -> configparser.ConfigParser:
    """Reads spark_versions.ini, which has one section per Spark minor version."""
    parsed = configparser.ConfigParser()
    parsed.read(PACKAGE / "spark_versions.ini", encoding="utf-8")
    return parsed


def minor(version: str) -> str:
    """Returns the minor version, such as "4.3" for "4.3.0", "4.3.0.dev1" and vendors' versions."""
    return ".".join(version.split(".")[:2])


def supported() -> list[str]:
    """Returns the minor versions of Spark that pyzorder supports, oldest first."""
    return table().sections()


def jar_path(spark: str) -> Path:
    """Returns the path of the jar for a supported minor version, whether or not it exists."""
    scala = table()[spark]["scala"]
    return PACKAGE / "jars" / f"pyzorder-spark-{spark}_{scala}-{__version__}.jar"


def least_java(spark: str) -> int:
    """Returns the oldest Java release on which a supported minor version of Spark runs."""
    return int(table()[spark]["java"])


def java_program() -> str | None:
    """Returns the Java program that Spark starts, or None if there is none on PATH.

    If JAVA_HOME is set, this is the program in that folder, whether or not it exists.
    """
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")
