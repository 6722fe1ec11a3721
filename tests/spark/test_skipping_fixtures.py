"""From optimized predicates, pyzorder derives the index filters that sql/skipping lists.

A line has the form `predicate | filter | FALSE | NULL`. The first filter is the index filter for
WHERE, which EXPLAIN also shows. The second filter selects the files in which the predicate may be
FALSE. The third filter selects the files in which the predicate may be NULL. If neither the second
nor the third filter selects a file, all rows in the file match. To add a line, write `predicate |`,
run this test, and paste the line that it prints.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.support.scans import explain, judgements

FIXTURES = Path(__file__).parents[2] / "sql" / "skipping"
PAGE = Path(__file__).parents[2] / "docs" / "how-skipping-is-proved.md"
RULES = Path(__file__).parents[2] / "jvm/src/main/scala/io/pyzorder/skipping/predicate"

#: Expressions that need no rule, because they are leaves or base classes.
LEAVES = {
    "AttributeReference", "BoundReference", "Expression", "LeafExpression", "Literal",
    "PlanExpression", "Predicate", "PrettyAttribute", "PythonUDF", "Unevaluable",
}  # fmt: skip

#: Expressions that skip files only if the index has statistics of an array's elements. They are
#: tested by test_array_elements.py.
ON_ELEMENTS = {"ArrayContains", "ArraysOverlap", "Explode"}


class Fixture(NamedTuple):
    """A line in a fixture file. Each filter is a set of strings, because the filter may differ
    between Spark versions."""

    columns: str
    predicate: str
    filters: list[set[str]]


def fixtures_of(path: Path) -> list[Fixture]:
    """The fixtures in a file. A line that starts with `columns:` declares the table's columns, and
    lines that start with # are comments."""
    columns, found = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("columns:"):
            columns = line.removeprefix("columns:").strip()
        elif line.strip() and not line.startswith("#"):
            predicate, *filters = line.split(" |")
            alternatives = [set(f.strip().split(" || ")) for f in " |".join(filters).split(" | ")]
            found.append(Fixture(columns, predicate.strip(), alternatives))
    return found


def index_filter(spark: SparkSession, table: str, predicate: str) -> str:
    """The filter that a scan of `table WHERE predicate` applies to the index."""
    scans = explain(spark.sql(f"SELECT * FROM {table} WHERE {predicate}"))
    # If a predicate is never TRUE, the plan has no scan.
    return str(scans[0]["indexFilter"]) if scans else "false"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_fixtures(spark: SparkSession, path: Path) -> None:
    table, fixtures, wrong = f"fixture_{path.stem}", fixtures_of(path), []
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(f"CREATE TABLE {table} ({fixtures[0].columns}) USING parquet")
    try:
        judged = judgements(spark, table, [fixture.predicate for fixture in fixtures])
        for fixture, judgement in zip(fixtures, judged, strict=True):
            opened = index_filter(spark, table, fixture.predicate)
            found = [opened, judgement["mayBeFalse"], judgement["mayBeNull"]]
            if len(fixture.filters) != len(found) or not all(
                one in known for one, known in zip(found, fixture.filters, strict=True)
            ):
                wrong.append(" | ".join([fixture.predicate, *found]))
    finally:
        spark.sql(f"DROP TABLE {table}")
    assert not wrong, "\n".join(["got:", *wrong])


def expressions(spark: SparkSession, path: Path) -> set[str]:
    """The classes of all expressions in a fixture file's optimized predicates."""
    table, fixtures = f"rules_{path.stem}", fixtures_of(path)
    spark.sql(f"CREATE TABLE {table} ({fixtures[0].columns}) USING parquet")
    try:
        predicates = ", ".join(f"({fixture.predicate})" for fixture in fixtures)
        selected = spark.sql(f"SELECT {predicates} FROM {table}")
        plan = selected._jdf.queryExecution().optimizedPlan().toJSON()
        return set(re.findall(r'"class":"[a-z.]+\.expressions\.(\w+)"', plan))
    finally:
        spark.sql(f"DROP TABLE {table}")


def test_each_rule_has_a_fixture(spark: SparkSession) -> None:
    named = re.compile(
        r"^import org\.apache\.spark\.sql\.catalyst\.expressions\.(\{.+?\}|\w+)", re.M | re.S
    )
    imports = " ".join(n for f in RULES.glob("*.scala") for n in named.findall(f.read_text()))
    met = set().union(*(expressions(spark, path) for path in FIXTURES.glob("*.txt")))
    assert set(re.findall(r"[A-Z]\w+", imports)) - LEAVES - ON_ELEMENTS - met == set()


def test_the_worked_files_of_the_page(spark: SparkSession, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([ABC]) \| ([^|]+) \|", page, re.M)
    for _, values in rows:
        df = spark.sql(f"SELECT CAST(x AS INT) AS a FROM (SELECT explode(array({values})) AS x)")
        df.coalesce(1).write.mode("append").parquet(str(tmp_path))
    spark.sql(f"CREATE SKIPPING INDEX ON parquet.`{tmp_path}`")
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("worked")
    lines = re.findall(r"^\| `([^|]+)` \| (.+?) \| (.+?) \| (.+?) \|$", page, re.M)
    names = spark.sql("SELECT input_file_name() AS f, max(a) AS a FROM worked GROUP BY 1").collect()
    by_greatest = {row["a"]: row["f"].rsplit("/", 1)[-1] for row in names}
    judged = judgements(spark, "worked", [line[0] for line in lines])
    found = [
        (line[0], *(judgement["files"][by_greatest[a]] for a in (5, 9, None)))
        for line, judgement in zip(lines, judged, strict=True)
    ]
    expected = [(p, *(set(x.lower().split(", ")) for x in outcomes)) for p, *outcomes in lines]
    assert found == expected
    assert len(lines) > 8
