"""Publishes the jar to a folder, and checks that `spark-sql --packages` can load it from there.

python -m tests.support.programs.packages
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "jvm"))

import build  # noqa: E402

SQL = """
CREATE TABLE t USING parquet AS SELECT id, id % 7 AS k FROM range(100);
OPTIMIZE t ZORDER BY (id);
SELECT concat('rows: ', count(*)) FROM t WHERE id < 10;
"""


def main() -> int:
    spark, home = build.installed_spark()
    scala, version = build.spark_versions()[spark]["scala"], build.project_version()
    made = ROOT / "build"
    packages = (made / "packages").as_uri()
    subprocess.run(
        ["mvn", "-B", "-q", "-f", ROOT / "jvm", "-P", f"spark-{spark}", "deploy", "-DskipTests",
         "-Dmaven.install.skip=true",
         f"-DaltDeploymentRepository=local::{packages}"],
        check=True,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(dir=made) as folder:
        ran = subprocess.run(
            [Path(pyspark.__file__).parent / "bin" / "spark-sql", "--master", "local[1]",
             "--packages", f"io.pyzorder:pyzorder-spark-{spark}_{scala}:{version}",
             "--repositories", packages,
             # Ivy would prefer the Maven repository in the home folder to the published jar.
             "--driver-java-options", f"-Duser.home={folder}",
             "--conf", f"spark.jars.ivy={folder}/ivy",
             "--conf", f"spark.sql.warehouse.dir={folder}/warehouse",
             "--conf", "spark.driver.bindAddress=127.0.0.1",
             "--conf", "spark.driver.host=127.0.0.1",
             "--conf", "spark.ui.enabled=false",
             "--conf", "spark.sql.extensions=io.pyzorder.ZOrderExtensions",
             "-e", SQL],
            cwd=folder, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    print(ran.stdout)
    if ran.returncode != 0 or "rows: 10" not in ran.stdout:
        print(f"spark-sql --packages failed on Spark {spark}", file=sys.stderr)
        return 1
    print(f"spark-sql --packages works on Spark {spark} of {home}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
