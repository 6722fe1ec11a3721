"""Runs statements in separate Spark processes that share a Hive metastore on Derby.

`python -m tests.support.processes.hive_session /folder plain|pyzorder fail-point table partition
statement …` runs the statements. It then prints the ids and the location of the table or of a
partition, and how Spark reads the table, as JSON. `run` and `told` start this program.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support import sessions
from tests.support.scans import discovered

ROOT = Path(__file__).parents[3]


def run(
    folder: Path,
    table: str,
    *statements: str,
    plain: bool = False,
    killed_at: str = "",
    partition: str = "",
) -> tuple[list[int], Path]:
    """Runs the statements in a separate process. Returns the ids and the location of the table or
    of a partition, as the process sees them at the end.

    With `plain`, Spark runs without pyzorder. With `killed_at`, the process must be killed at this
    fail point, and the result is ([], folder).
    """
    found = told(folder, table, *statements, plain=plain, killed_at=killed_at, partition=partition)
    if killed_at:
        return [], folder
    return found["ids"], Path(found["location"].removeprefix("file:"))


def told(
    folder: Path,
    table: str,
    *statements: str,
    plain: bool = False,
    killed_at: str = "",
    partition: str = "",
) -> dict[str, Any]:
    """Like `run`, but returns everything that the process prints: also the relation as which Spark
    reads the table, and the number of files that Spark has found in listings."""
    kind = "plain" if plain else "pyzorder"
    child = subprocess.run(
        [sys.executable, "-m", __name__, str(folder), kind, killed_at, table, partition,
         *statements],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )  # fmt: skip
    if killed_at:
        assert child.returncode != 0, f"{killed_at} was not reached"
        return {}
    assert child.returncode == 0, child.stderr[-3000:]
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def relation_of(frame: DataFrame) -> list[str]:
    """The format, the columns and the options with which Spark reads the only table of a query.
    Empty if Spark does not read it with a data source."""
    leaf = frame._jdf.queryExecution().analyzed().collectLeaves().head()
    if not leaf.getClass().getSimpleName().startswith("LogicalRelation"):
        return []
    relation = leaf.relation()
    options = relation.options().mkString("\n").splitlines()
    return [relation.fileFormat().toString(), relation.schema().json(), *sorted(options)]


def main(
    folder: str, kind: str, killed_at: str, table: str, partition: str, *statements: str
) -> None:
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={folder}/metastore;create=true"
        ),
    }
    if kind == "plain":
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    else:
        named = {name.replace(".", "__"): value for name, value in settings.items()}
        spark = sessions.session(spark__sql__zorder__test__killAt=killed_at, **named)
    for statement in statements:
        spark.sql(statement).collect()
    ids = sorted(row["id"] for row in spark.table(table).select("id").collect())
    of = f" PARTITION ({partition})" if partition else ""
    described = spark.sql(f"DESCRIBE EXTENDED {table}{of}").collect()
    location = next(row["data_type"] for row in described if row["col_name"] == "Location")
    print(json.dumps({
        "ids": ids, "location": location, "relation": relation_of(spark.table(table)),
        "discovered": discovered(spark),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
