"""Provides Hadoop's jars for a store, in the version of PySpark's Hadoop client."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark

HERE = Path(__file__).parent


def hadoop_version() -> str:
    """The version of the Hadoop client that ships with PySpark."""
    (client,) = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    return client.stem.removeprefix("hadoop-client-api-")


def fetched(profile: str) -> list[Path]:
    """The jars in a profile of pom.xml. Maven downloads them on first use."""
    version = hadoop_version()
    folder = HERE.parents[1] / "build" / "stores" / f"{profile}-{version}"
    done = folder / "complete"
    if not done.exists():
        subprocess.run(
            ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "-P", profile, f"-Dhadoop.version={version}",
             "dependency:copy-dependencies", f"-DoutputDirectory={folder}",
             "-DincludeScope=runtime"],
            check=True,
        )  # fmt: skip
        done.touch()
    return sorted(folder.glob("*.jar"))
