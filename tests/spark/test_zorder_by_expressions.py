"""OPTIMIZE … ZORDER BY clusters files by expressions, and the index has statistics for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import ZOrderTable
from tests.support.sampled import long
from tests.support.scans import opened, plain, settings
from tests.support.tables import aim_at, data_files, metrics

ROWS = 20_000
FILES = 16

COLUMNS = (
    f"id, concat('User', id * 7919 % {ROWS}) AS email, id * 104729 % 1000 AS a,"
    f" id * 1299709 % 1000 AS b, named_struct('t', timestamp_seconds(id * 15485863 % {ROWS}))"
    " AS s, concat('{\"n\": ', id * 7919 % 1000, '}') AS j, id DIV 10000 AS p"
)


@pytest.fixture(params=long(["parquet", "orc"], "parquet"))
def folder(
    spark: SparkSession, database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Path:
    """The folder of the table `people`. Files that are not clustered contain all values."""
    spark.sql(
        f"CREATE TABLE people USING {request.param} AS SELECT /*+ REPARTITION(4) */ {COLUMNS}"
        f" FROM range({ROWS})"
    )
    folder = tmp_path / "db" / "people"
    aim_at(spark, folder, FILES)
    return folder


def share(spark: SparkSession, condition: str) -> float:
    """The share of the files that a query opens. Its answer is the same as in plain Spark."""
    query = f"SELECT id FROM people WHERE {condition} ORDER BY id"
    found = spark.sql(query).collect()
    with plain(spark):
        assert spark.sql(query).collect() == found and found
    return len(opened(spark.sql(query))) / FILES


#: Clustering columns, and for each a condition that few files can meet.
CASES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "a function": (["lower(email)"], ["lower(email) = 'user77'"]),
    "a column and a function": (
        ["a", "substring(email, 5, 3)"],
        ["a = 77", "substring(email, 5, 3) = '123'"],
    ),
    "a comparison": (["a < b", "a"], ["a < b AND a > 900", "b > a AND a > 900"]),
    "the negation of a comparison": (["a < b", "a"], ["a >= b AND a < 50", "NOT a < b AND a < 50"]),
    "a condition on many values": (
        ["a % 8 IN (1, 2)", "b"],
        ["a % 8 IN (1, 2) AND b < 50"],
    ),
    "a disjunction": (["a < 20 OR b < 20"], ["(a < 20 OR b < 20)"]),
    "a field of a struct": (["to_date(s.t)", "hour(s.t)"], ["hour(s.t) = 3"]),
    "a path in JSON": (
        ["CAST(get_json_object(j, '$.n') AS INT)"],
        ["CAST(get_json_object(j, '$.n') AS INT) = 77"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_clustered(spark: SparkSession, folder: Path, case: str) -> None:
    by, conditions = CASES[case]
    rows = spark.table("people").orderBy("id").collect()
    clause = f"ZORDER BY ({', '.join(by)})"
    planned = metrics(spark.sql(f"OPTIMIZE people {clause} DRY RUN"))
    done = metrics(spark.sql(f"OPTIMIZE people {clause}"))
    assert list(done["clusteringColumns"]) == list(by) == list(planned["clusteringColumns"])
    assert planned["numFilesAdded"] == done["numFilesAdded"] == FILES
    assert spark.table("people").orderBy("id").collect() == rows
    assert {c: s for c in conditions if (s := share(spark, c)) > 0.5} == {}


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "linear"])
@pytest.mark.parametrize("method", ["boundaries", "direct"])
def test_curves(spark: SparkSession, folder: Path, curve: str, method: str) -> None:
    if method == "direct" and curve != "zorder":
        pytest.skip("the direct method has only one curve")
    with settings(
        spark,
        spark__sql__zorder__optimize__curve=curve,
        spark__sql__zorder__optimize__method=method,
    ):
        spark.sql("OPTIMIZE people ZORDER BY (lower(email), a < b)").collect()
    assert share(spark, "lower(email) = 'user77'") <= 0.6
    described = spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()
    assert not [row["column"] for row in described if row["column"].startswith("zorder_value")]


def test_later_runs(spark: SparkSession, folder: Path) -> None:
    """A later OPTIMIZE keeps the expressions, and rewrites only new files."""
    spark.sql("OPTIMIZE people ZORDER BY (lower(email), a < b)").collect()
    same = metrics(spark.sql("OPTIMIZE people ZORDER BY (LOWER( email ), b > a)"))
    assert same["numFilesRemoved"] == 0
    assert list(same["clusteringColumns"]) == ["lower(email)", "a < b"]
    spark.sql(f"INSERT INTO people SELECT {COLUMNS} FROM range({ROWS}, {ROWS} + 100)")
    later = metrics(spark.sql("OPTIMIZE people"))
    assert list(later["clusteringColumns"]) == ["lower(email)", "a < b"]
    assert 0 < later["numFilesRemoved"] < FILES
    described = {
        row["column"]: row for row in spark.sql("DESCRIBE SKIPPING INDEX ON people").collect()
    }
    assert described["a < b"]["clustered"] == described["a < b"]["files"] == len(data_files(folder))
    assert described["a < b"]["unknown"] == 0
    spark.sql("OPTIMIZE people FULL ZORDER BY (id)").collect()
    spark.sql("RESTORE people TO BEFORE OPTIMIZE").collect()
    again = metrics(spark.sql("OPTIMIZE people DRY RUN"))
    assert list(again["clusteringColumns"]) == ["lower(email)", "a < b"]


def test_partitions(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql(
        f"CREATE TABLE people USING parquet PARTITIONED BY (p) AS SELECT /*+ REPARTITION(4) */"
        f" {COLUMNS} FROM range({ROWS})"
    )
    aim_at(spark, tmp_path / "db" / "people", FILES)
    spark.sql("OPTIMIZE people WHERE p = 1 ZORDER BY (lower(email))").collect()
    assert (
        share(spark, "p = 1 AND lower(email) = lower(concat('User', 10001 * 7919 % 20000))") < 0.2
    )
    with pytest.raises(Exception, match="There is no column p"):
        spark.sql("OPTIMIZE people ZORDER BY (p + a)").collect()


def test_declared(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """INSERT clusters new rows by the expressions that a table declares, and indexes them."""
    spark.sql(
        "CREATE TABLE people (id BIGINT, email STRING, a BIGINT, b BIGINT) USING parquet TBLPROPERTIES"
        " ('zorder.clusterBy' = 'lower(email), a < b', 'zorder.write.cluster' = 'true')"
    )
    folder = tmp_path / "db" / "people"
    select = f"INSERT INTO people SELECT id, email, a, b FROM (SELECT {COLUMNS} FROM range({ROWS}))"
    with settings(spark, spark__sql__zorder__optimize__targetFileSize="16k"):
        spark.sql(select)
        assert len(data_files(folder)) > 4
        for _ in range(2):
            query = spark.sql("SELECT id FROM people WHERE lower(email) = 'user77'")
            assert query.count() == 1 and len(opened(query)) <= len(data_files(folder)) / 2
            done = metrics(spark.sql("OPTIMIZE people"))
            assert list(done["clusteringColumns"]) == ["lower(email)", "a < b"]
            assert done["numFilesRemoved"] == 0, "the rows are clustered already"
    spark.sql("ALTER TABLE people SET TBLPROPERTIES ('zorder.clusterBy' = 'lower(email')")
    for statement in ("OPTIMIZE people", select):
        with pytest.raises(Exception, match="zorder.clusterBy.*list columns as in ZORDER BY"):
            spark.sql(statement).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_expression_that_fails(spark: SparkSession, folder: Path, ansi: str) -> None:
    """Rows for which an expression fails are rewritten like all others."""
    with settings(spark, spark__sql__ansi__enabled=ansi):
        rows = spark.table("people").orderBy("id").collect()
        spark.sql("OPTIMIZE people ZORDER BY (100000 DIV (a - 77), b)").collect()
        assert spark.table("people").orderBy("id").collect() == rows
        assert share(spark, "b = 5") <= 0.7


REFUSED = [
    ("rand()", "ZORDER_NOT_INDEXABLE"),
    ("lower(nobody)", "ZORDER_UNKNOWN_COLUMN"),
    ("(a)", "ZORDER_NOT_INDEXABLE"),
    ("a +", "ZORDER_NOT_INDEXABLE"),
    ("sum(a)", "ZORDER_NOT_INDEXABLE"),
    ("(SELECT 1)", "ZORDER_NOT_INDEXABLE"),
    ("array(a)", "ZORDER_NOT_INDEXABLE"),
    ("lower(email), LOWER(email)", "ZORDER_DUPLICATE_COLUMN"),
    ("a < b, b > a", "ZORDER_DUPLICATE_COLUMN"),
    ("lower(secret)", "ZORDER_DENIED_COLUMN"),
]


@pytest.mark.parametrize("by, condition", REFUSED)
def test_refused(spark: SparkSession, folder: Path, by: str, condition: str) -> None:
    spark.sql("ALTER TABLE people ADD COLUMN secret STRING")
    before = data_files(folder)
    with (
        settings(spark, spark__sql__zorder__index__denyColumns="secret"),
        pytest.raises(Exception, match=condition),
    ):
        spark.sql(f"OPTIMIZE people ZORDER BY ({by})").collect()
    assert data_files(folder) == before and not (folder / "_zorder").exists()


FORGED = ["rand()", "nobody + 1", "reflect('java.lang.System', 'gc')", "(SELECT 1)", "x" * 5000, ""]


@pytest.mark.parametrize("text", FORGED)
def test_forged_layouts(spark: SparkSession, folder: Path, text: str) -> None:
    """An expression in a forged journal is used only if it can be indexed."""
    spark.sql("OPTIMIZE people ZORDER BY (lower(email))").collect()
    (record,) = (folder / "_zorder" / "_journal").glob("*.retire")
    content = json.loads(record.read_text())
    assert content["layout"]["columns"] == ["lower(email)"]
    content["layout"]["columns"] = [text]
    record.write_text(json.dumps(content))
    found = metrics(spark.sql("OPTIMIZE people DRY RUN"))
    assert list(found["clusteringColumns"]) == ["lower(email)"], "as in the index"


@pytest.fixture
def table(spark: SparkSession, folder: Path) -> Iterator[ZOrderTable]:
    yield ZOrderTable.forName(spark, "people")


def test_from_python(spark: SparkSession, table: ZOrderTable) -> None:
    done = metrics(table.optimize().executeZOrderBy("lower(email)", "a < b"))
    assert list(done["clusteringColumns"]) == ["lower(email)", "a < b"]
    table.dropSkippingIndex()
    table.createSkippingIndex("id", "upper(email)")
    columns = [row["column"] for row in table.describeSkippingIndex().collect()]
    assert columns == ["id", "upper(email)"]
