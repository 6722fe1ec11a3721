"""dbt builds the models in docs/guides/dbt.md as written, and their hooks cluster the tables."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyhive import hive

from tests.support.documents import blocks

pytestmark = pytest.mark.dbt

TITLE = re.compile(r'title="(.+)"')

#: The files of the project that the page does not show. The rows of `raw_sales` lie in several
#: files, and some of them belong to the current month.
OTHERS = {
    "models/raw_sales.sql": """
        {{ config(materialized='table', file_format='parquet') }}
        SELECT /*+ REPARTITION(8) */ id % 100 AS customer_id, id AS amount,
          current_date() - CAST(id % 300 AS INT) AS sold_date
        FROM range(20000)
    """,
    "models/marts/totals.sql": """
        {{ config(materialized='table') }}
        SELECT /*+ REPARTITION(4) */ customer_id, amount FROM {{ ref('sales') }}
    """,
}

PROJECT = 'name: shop\nversion: "1.0"\nprofile: shop\nmodel-paths: [models]\n\n'


def project(folder: Path, port: int) -> None:
    """Writes the files whose contents the page shows, and the others."""
    shown = {
        title.group(1): block.code
        for block in blocks("docs/guides/dbt.md")
        if (title := TITLE.search(block.language))
    }
    shown["dbt_project.yml"] = PROJECT + shown["dbt_project.yml"]
    profile = shown["profiles.yml"].replace("spark.example.com", "127.0.0.1")
    shown["profiles.yml"] = profile.replace("port: 10000", f"port: {port}")
    for name, text in (shown | OTHERS).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def build(folder: Path) -> None:
    """Builds all models."""
    done = subprocess.run(
        [os.environ["PYZORDER_DBT"], "build", "--profiles-dir", "."],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_models(thrift_server: int, tmp_path: Path) -> None:
    project(tmp_path, thrift_server)
    with hive.connect("127.0.0.1", port=thrift_server, username="me") as connection:
        cursor = connection.cursor()

        def rows(statement: str) -> list[Any]:
            cursor.execute(statement)
            return list(cursor.fetchall())

        def runs(table: str) -> list[Any]:
            return rows(f"SELECT operation, partitions FROM optimize_history('{table}')")

        def clustered(table: str) -> set[str]:
            described = f"DESCRIBE SKIPPING INDEX ON {table}"
            cursor.execute(described)
            names = [name.split(".")[-1] for name, *_ in cursor.description]
            found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            return {row["column"] for row in found if row["clustered"] == row["files"] > 0}

        build(tmp_path)
        assert clustered("sales") == {"customer_id", "sold_date"}
        assert clustered("daily") == {"customer_id"}
        [(operation, partitions)] = runs("daily")
        assert operation == "OPTIMIZE" and partitions > 1
        assert [operation for operation, _ in runs("totals")] == ["OPTIMIZE"]
        build(tmp_path)
        assert runs("daily")[1:] == [("OPTIMIZE", 1)], "only the current month was replaced"
        assert clustered("daily") == {"customer_id"}
        [(count,)] = rows("SELECT count(*) FROM daily")
        assert count == 20_000
