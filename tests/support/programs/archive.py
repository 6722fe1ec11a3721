"""Archives the classes that Spark loads, so that the JVMs of tests start in half the time.

    python -m tests.support.programs.archive

Each Python environment has its own archive. A JVM build other than the one that created an archive
ignores it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark import SparkContext

from tests.support import sessions


def make(archive: Path) -> None:
    """Starts Spark, runs statements like those in most tests, and lets the JVM archive its
    classes."""
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"{sessions.JVM_OPTIONS} -XX:ArchiveClassesAtExit={archive} -Xlog:disable"
    )
    with tempfile.TemporaryDirectory() as folder:
        spark = sessions.session(spark__sql__warehouse__dir=folder)
        table = f"{folder}/table"
        spark.range(1000).selectExpr("id AS a", "CAST(id % 7 AS STRING) AS b").write.parquet(table)
        spark.sql(f"OPTIMIZE '{table}' ZORDER BY (a, b)").collect()
        spark.read.parquet(table).where("a = 5").groupBy("b").count().orderBy("b").collect()
        spark.stop()
        jvm = SparkContext._gateway.proc  # type: ignore[union-attr]
        jvm.stdin.close()
        jvm.wait()


def main() -> int:
    archive = sessions.ARCHIVE
    if archive.exists() and archive.stat().st_mtime > Path(pyspark.__file__).stat().st_mtime:
        return 0
    archive.unlink(missing_ok=True)
    make(archive)
    print(archive if archive.exists() else "This version of Java cannot archive classes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
