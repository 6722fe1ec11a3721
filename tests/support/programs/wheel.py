"""Installs the wheel with every PySpark version, and the sdist with the newest PySpark version.
Each installation then optimizes a table.

    PYTHONPATH=jvm python -m tests.support.programs.wheel dist

Each installation uses a new virtual environment. Commands run in an empty folder, so they cannot
import anything from the source tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

import build
import environment

PROGRAM = """
import sys
from pathlib import Path
import pyzorder
from pyspark.sql import SparkSession
from pyzorder import bridge, session
assert Path(pyzorder.__file__).is_relative_to(sys.prefix), pyzorder.__file__
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = pyzorder.configure(builder).getOrCreate()
spark.conf.set("spark.sql.zorder.optimize.targetFileSize", "8k")
rows = spark.range(20000).selectExpr("id % 400 AS a", "id div 400 * 7 % 50 AS b", "id")
rows.repartition(16).write.saveAsTable("t")
query = spark.sql("SELECT * FROM t WHERE a = 7")
before = sorted(query.collect())
spark.sql("OPTIMIZE t ZORDER BY (a, b)")
assert sorted(spark.sql("SELECT * FROM t WHERE a = 7").collect()) == before and len(before) == 50
(scan,) = pyzorder.explain(spark.sql("SELECT * FROM t WHERE a = 7"))
assert scan.unindexed == 0 and 1 <= scan.selected <= scan.total // 2, scan
loaded = bridge.session_manifest(spark)["Pyzorder-Spark-Version"]
print("FOUND", spark.version, loaded, session.jar().name, scan.selected, scan.total)
"""


def run(folder: Path, *command: str) -> str:
    """Runs a command that is installed in the environment `folder`. The working folder is empty,
    and environment variables that could affect the command are unset. Returns the output."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "SPARK_CONF_DIR")
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            [str(folder / "bin" / "with-java"), *command],
            capture_output=True, text=True, cwd=empty,
            env={**{k: v for k, v in os.environ.items() if k not in ours},
                 "SPARK_LOCAL_IP": "127.0.0.1"},
        )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


def install(folder: Path, *packages: str) -> None:
    """Creates an environment, and installs packages in it with pip."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin" / "python"
    environment.require(environment.pip_install(python, *packages), " ".join(packages))
    environment.install_java(folder, python)


def check(folder: Path, spark: str, what: str) -> None:
    """Optimizes a table and runs `pyzorder doctor` in an environment."""
    begun = time.monotonic()
    said = run(folder, str(folder / "bin" / "python"), "-c", PROGRAM)
    version, loaded, jar, selected, total = said.split("FOUND ")[1].split()
    assert loaded == spark == ".".join(version.split(".")[:2]), said
    assert jar == build.jar_name(spark), said
    run(folder, str(folder / "bin" / "pyzorder"), "doctor")
    seconds = time.monotonic() - begun
    print(f"{what}, PySpark {version}: {jar}, {selected} of {total} files opened, {seconds:.0f} s")


def check_jars(wheel: Path) -> None:
    """Checks that the wheel contains a jar for each Spark version, and that each jar was built from
    the current sources."""
    sparks = build.spark_versions().sections()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        jars = Path(folder) / "pyzorder" / "jars"
        assert {p.name for p in jars.glob("*.jar")} == {build.jar_name(s) for s in sparks}
        assert all(build.is_built(spark, jars) for spark in sparks)
    print(f"{wheel.name}: {len(sparks)} jars, {wheel.stat().st_size / 2**20:.1f} MiB")


def only(folder: Path, pattern: str) -> Path:
    """The single file that matches the pattern and has the project's current version."""
    (found,) = folder.glob(f"pyzorder_spark-{build.project_version()}{pattern}")
    return found.absolute()


def main(dist: Path) -> int:
    wheel, sdist = only(dist, "-*.whl"), only(dist, ".tar.gz")
    check_jars(wheel)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "environment"
        for spark in build.spark_versions().sections():
            pyspark = f"pyspark=={build.spark_versions()[spark]['pyspark']}"
            install(folder, pyspark, f"{wheel}[cli]")
            check(folder, spark, "wheel")
        install(folder, pyspark)
        built = environment.pip_install(folder / "bin" / "python", f"{sdist}[cli]")
        environment.require(built, sdist.name)
        check(folder, spark, "sdist")
    print("Every installation optimized a table.")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
