"""The valid statements in sql/statements run, and the invalid ones are rejected with the expected
error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.support import scans

STATEMENTS = Path(__file__).parents[2] / "sql" / "statements"


def _lines(name: str) -> list[str]:
    text = (STATEMENTS / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    """Creates the tables that occur in the statements."""
    made = ("parts", "flat", "buckets", "filtered", "as_json", "full", "table", "declares_an_empty_list",
            "torn_parquet", "torn_orc")  # fmt: skip
    spark.sql(
        "CREATE TABLE parts (a INT, b STRING, s STRUCT<x: INT, m: MAP<INT, INT>>, day DATE) "
        "USING parquet PARTITIONED BY (day)"
    )
    spark.sql("INSERT INTO parts VALUES (1, 'a', NULL, DATE'2024-01-01')")
    spark.sql("CREATE TABLE flat (a INT, b STRING) USING orc")
    spark.sql("INSERT INTO flat VALUES (1, 'a')")
    spark.sql("CREATE TABLE buckets (a INT) USING parquet CLUSTERED BY (a) INTO 2 BUCKETS")
    spark.sql("CREATE TABLE filtered (a INT) USING parquet OPTIONS (PathGlobFilter 'keep*')")
    spark.sql("CREATE TABLE as_json (a INT) USING json")
    spark.sql(
        "CREATE TABLE full (full INT, where INT, dry INT, zorder INT, by INT, "
        "`a ``quoted`` name` INT, `dotted.name` INT) USING parquet"
    )
    spark.sql("INSERT INTO full VALUES (1, 2, 3, 4, 5, 6, 7)")
    spark.sql("CREATE TABLE table USING parquet AS SELECT * FROM full")
    spark.sql("CREATE TABLE declares_an_empty_list (a INT) USING orc "
              "TBLPROPERTIES ('zorder.clusterBy' = '')")  # fmt: skip
    spark.sql("CREATE VIEW a_view AS SELECT * FROM parts")
    spark.sql("CREATE TEMPORARY VIEW a_temp_view AS SELECT * FROM parts")
    yield spark
    spark.sql("DROP VIEW a_temp_view")
    spark.sql("DROP VIEW a_view")
    for table in made:
        spark.sql(f"DROP TABLE IF EXISTS `{table}`")


@pytest.fixture(scope="module")
def folder(tables: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that replaces {folder} in the statements. It contains subfolders with files, some
    of which are truncated."""
    folder = Path(tmp_path_factory.mktemp("folders"))
    for fmt in ("parquet", "orc"):
        tables.range(0, 4, 1, 1).write.format(fmt).save(str(folder / fmt))
        tables.range(0, 4, 1, 1).write.format(fmt).save(str(folder / f"torn_{fmt}"))
        (data,) = (folder / f"torn_{fmt}").glob("part-*")
        data.write_bytes(data.read_bytes()[:-20])
        (data.parent / f".{data.name}.crc").unlink()
        tables.sql(f"CREATE TABLE torn_{fmt} (id BIGINT) USING {fmt} LOCATION '{data.parent}'")
    for name in ("sink", "indexed"):
        tables.range(4).write.parquet(str(folder / name))
    (folder / "sink" / "_spark_metadata").mkdir()
    for name, column in (
        ("two_types", "id"),
        ("two_types", "date'2020-01-01' AS id"),
        ("stray", "id"),
    ):
        rows = tables.range(4).selectExpr(column)
        rows.write.mode("append").parquet(str(folder / name))
    (folder / "stray" / "README.txt").write_text("This table is made by the nightly job.")
    (folder / "empty").mkdir()
    (folder / "a_file").write_text("")
    tables.sql(f"CREATE SKIPPING INDEX ON '{folder}/indexed'")
    return folder


@pytest.mark.variants
@pytest.mark.parametrize("line", _lines("rejected.txt"))
def test_rejected(tables: SparkSession, folder: Path, line: str) -> None:
    statement, error_class, words = (part.strip() for part in line.split(" | "))
    with pytest.raises(AnalysisException) as raised:
        tables.sql(statement.replace("{folder}", str(folder)))
    assert f"[{error_class}]" in str(raised.value)
    assert words.replace("{folder}", str(folder)) in str(raised.value)


#: All statements and functions that take a table.
ON_A_TABLE = [
    "OPTIMIZE {} ZORDER BY (a)", "OPTIMIZE TABLE {} DRY RUN", "CREATE SKIPPING INDEX ON {}",
    "REFRESH SKIPPING INDEX ON {}", "DESCRIBE SKIPPING INDEX ON {}", "DROP SKIPPING INDEX IF EXISTS ON {}",
    "VACUUM {}", "RESTORE {} TO BEFORE OPTIMIZE", "SELECT * FROM skipping_index('{}')",
    "SELECT * FROM optimize_history('{}')", "SELECT * FROM zorder_workload('{}')",
]  # fmt: skip


@pytest.mark.parametrize("statement", ON_A_TABLE)
def test_a_path_as_a_name(spark: SparkSession, statement: str) -> None:
    """If a path is in backquotes but has no format before it, the error says how to write the path.
    This applies only to names that look like paths, and only if no table or view has that name."""
    for path in ("/no/where", "./no", "no/where", "s3a://bucket/t", "file:/t"):
        with pytest.raises(AnalysisException) as raised:
            spark.sql(statement.format(f"`{path}`"))
        assert "[ZORDER_TABLE_NOT_FOUND]" in str(raised.value)
        assert f"write parquet.`{path}`, orc.`{path}` or '{path}'" in str(raised.value)
    for name in ("no:where", "a://b`.`c"):
        with pytest.raises(AnalysisException, match=r"\[TABLE_OR_VIEW_NOT_FOUND|SCHEMA_NOT_FOUND"):
            spark.sql(statement.format(f"`{name}`"))
    spark.sql("CREATE TEMPORARY VIEW `/view` AS SELECT 1 AS a")
    try:
        with pytest.raises(AnalysisException, match="ZORDER_VIEW"):
            spark.sql(statement.format("`/view`"))
    finally:
        spark.sql("DROP VIEW `/view`")


def test_accepted(tables: SparkSession) -> None:
    for statement in _lines("accepted.txt"):
        tables.sql(statement).collect()


def test_index_commands(tables: SparkSession) -> None:
    tables.sql("DROP SKIPPING INDEX IF EXISTS ON flat")
    tables.sql("CREATE SKIPPING INDEX ON flat (a)")
    with scans.settings(tables, spark__sql__zorder__write__index="false"):
        tables.sql("INSERT INTO flat VALUES (2, 'b')")
    (before,) = tables.sql("DESCRIBE SKIPPING INDEX ON flat").collect()
    assert (before["column"], before["files"], before["unindexed"]) == ("a", 2, 1)
    tables.sql("REFRESH SKIPPING INDEX ON flat")
    (after,) = tables.sql("DESCRIBE SKIPPING INDEX ON flat").collect()
    assert (after["unindexed"], after["unknown"], after["average_overlap"]) == (0, 0, 0.0)
    rows = tables.sql("SELECT a_minValue, a_maxValue FROM skipping_index('flat')").collect()
    assert sorted(tuple(row) for row in rows) == [(1, 1), (2, 2)]
    tables.sql("DROP SKIPPING INDEX ON flat")


def test_parameters_of_other_statements(tables: SparkSession) -> None:
    assert tables.sql("SELECT :x AS x", {"x": 3}).first() == (3,)
    assert tables.sql("SELECT ? AS x", [3]).first() == (3,)
