"""The advisor finds the filters and joins in statements on the table `sales`. It also reports which
parts of statements it leaves out."""

from __future__ import annotations

import pytest

pytest.importorskip("sqlglot")

from pyzorder.advisor.statements import StatementReader, is_query, split
from pyzorder.advisor.what_if import statements_of
from pyzorder.advisor.workload import NotUnderstood, Relation, TableNames, Workload

COLUMNS = {"sales": ("a", "b", "s", "d", "st", "day"), "dim": ("k", "g", "h"), "far": ("x", "y")}
VIEWS = {
    "v": ("SELECT a, b * 2 AS b2 FROM sales WHERE s = 'q'", ("a", "bb")),
    "vv": ("WITH w AS (SELECT * FROM v) SELECT bb AS x FROM w", ("x",)),
    "temp": (None, ("a",)),
}


class Names:
    """Resolves names to the tables and views above. All of them except the temporary view `temp`
    are in the database `db`."""

    def relation(self, parts: tuple[str, ...]) -> Relation:
        name = parts[-1].lower()
        temporary = name == "temp"
        if name in VIEWS and temporary == (len(parts) == 1):
            text, columns = VIEWS[name]
            return Relation(columns, True, temporary, text, ("spark_catalog", "db"))
        known = name in COLUMNS and (len(parts) == 1 or parts[-2] == "db")
        return Relation(COLUMNS[name] if known else None)


def read(*statements: str, database: str = "db") -> Workload:
    """Builds the workload from the given statements."""
    workload = Workload()
    table = TableNames(("db", "sales"), "file:/w/sales", COLUMNS["sales"])
    reader = StatementReader(table, Names(), workload, database)
    for statement in statements:
        reader.read(statement)
    return workload


#: (a statement, the filters on each scan of the table and how they use each column, the joins). A
#: join is written as `column < query`, where the query selects the keys of the other side. The
#: query is empty if the other side has no filter.
READINGS: list[tuple[str, list[list[str]]]] = [
    ("SELECT * FROM sales", [[]]),
    ("SELECT * FROM dim", []),
    ("SELECT * FROM other.sales WHERE a = 1", []),
    ("WITH c AS (SELECT * FROM sales WHERE a = 5) INSERT INTO dim SELECT * FROM c",
     [["`a` = 5: a equality"]]),
    ("SELECT 1 FROM (SELECT a FROM sales WHERE a = 1), (SELECT b FROM sales WHERE b = 2)",
     [["`a` = 1: a equality"], ["`b` = 2: b equality"]]),
    # ways to filter on a column
    ("SELECT 1 FROM sales WHERE a = 7 AND b < 3", [["`a` = 7: a equality", "`b` < 3: b range"]]),
    ("SELECT 1 FROM sales WHERE b BETWEEN 1 AND 2", [["`b` BETWEEN 1 AND 2: b range"]]),
    ("SELECT 1 FROM sales WHERE a IN (1, 2)", [["`a` IN (1, 2): a in"]]),
    ("SELECT 1 FROM sales WHERE a NOT IN (1)", [["NOT `a` IN (1): a other"]]),
    ("SELECT 1 FROM sales WHERE s LIKE 'x%'", [["`s` LIKE 'x%': s prefix"]]),
    ("SELECT 1 FROM sales WHERE s LIKE '%x'", [["`s` LIKE '%x': s other"]]),
    ("SELECT 1 FROM sales WHERE startswith(s, 'x')", [["STARTSWITH(`s`, 'x'): s prefix"]]),
    ("SELECT 1 FROM sales WHERE a % 7 = 3", [["`a` % 7 = 3: a other"]]),
    ("SELECT 1 FROM sales WHERE CAST(d AS STRING) = '1'", [["CAST(`d` AS STRING) = '1': d equality"]]),
    ("SELECT 1 FROM sales WHERE st.f.g = 3", [["`st`.`f`.`g` = 3: st.f.g equality"]]),
    ("SELECT 1 FROM sales WHERE a = 1 OR b > 2", [["`a` = 1 OR `b` > 2: a equality, b range"]]),
    # names of the table
    ("SELECT 1 FROM db.Sales t WHERE t.A = 1", [["`A` = 1: A equality"]]),
    ("SELECT 1 FROM spark_catalog.db.sales WHERE sales.a = 1", [["`a` = 1: a equality"]]),
    ("SELECT 1 FROM parquet.`/w/sales/` WHERE a = 1", [["`a` = 1: a equality"]]),
    # other statements with a query
    ("INSERT INTO far SELECT a, b FROM sales WHERE a = 1", [["`a` = 1: a equality"]]),
    ("CREATE TABLE n USING parquet AS SELECT a FROM sales WHERE a = 1", [["`a` = 1: a equality"]]),
    # subqueries, CTEs, views, UNION
    ("SELECT 1 FROM (SELECT a AS x, b FROM sales) q WHERE x = 1", [["`a` = 1: a equality"]]),
    ("SELECT 1 FROM (SELECT a + 1 AS x FROM sales) q WHERE x = 3", [["(`a` + 1) = 3: a other"]]),
    ("WITH q AS (SELECT * FROM sales), r AS (SELECT a FROM q WHERE b = 3) SELECT 1 FROM r WHERE a = 2",
     [["`a` = 2: a equality", "`b` = 3: b equality"]]),
    ("WITH q AS (SELECT * FROM sales) SELECT 1 FROM q WHERE a = 1 UNION SELECT 1 FROM q WHERE a = 2",
     [["`a` = 1: a equality"], ["`a` = 2: a equality"]]),
    ("SELECT 1 FROM (SELECT a FROM sales UNION ALL SELECT k FROM dim) u WHERE u.a = 9",
     [["`a` = 9: a equality"]]),
    ("SELECT 1 FROM (SELECT a, sum(b) AS t FROM sales GROUP BY a) q WHERE a = 3",
     [["`a` = 3: a equality"]]),
    ("SELECT a FROM sales GROUP BY a HAVING a > 3", [["`a` > 3: a range"]]),
    ("SELECT 1 FROM v WHERE bb = 4", [["(`b` * 2) = 4: b other", "`s` = 'q': s equality"]]),
    ("SELECT 1 FROM vv WHERE x = 4", [["(`b` * 2) = 4: b other", "`s` = 'q': s equality"]]),
    ("SELECT (SELECT max(a) FROM sales WHERE b = 1) FROM dim", [["`b` = 1: b equality"]]),
    ("SELECT 1 FROM dim WHERE k IN (SELECT a FROM sales WHERE b = 1)", [["`b` = 1: b equality"]]),
    # joins
    ("SELECT 1 FROM sales s JOIN dim ON s.b = dim.k WHERE g = 3",
     [["`b` < SELECT `dim`.`k` AS _zorder_key, `dim`.`k`, `dim`.`g` FROM `db`.dim WHERE g = 3"]]),
    ("SELECT 1 FROM sales, dim WHERE b = k", [["`b` < "]]),
    ("SELECT 1 FROM sales, dim WHERE b = k AND k > 5",  # Spark infers b > 5
     [["`b` > 5: b range",
       "`b` < SELECT `dim`.`k` AS _zorder_key, `dim`.`k` FROM `db`.dim WHERE k > 5"]]),
    ("SELECT 1 FROM sales JOIN (SELECT max(k) AS m FROM dim) q ON a = m",
     [["`a` < SELECT `q`.`m` AS _zorder_key, `q`.`m` FROM (SELECT MAX(k) AS m FROM `db`.dim) AS q"]]),
    ("SELECT 1 FROM sales WHERE a IN (SELECT k FROM dim WHERE g = 1)",
     [["`a` < SELECT q._zorder_key FROM (SELECT k FROM `db`.dim WHERE g = 1) AS q(_zorder_key)"]]),
    ("SELECT 1 FROM sales t WHERE EXISTS (SELECT 1 FROM dim WHERE dim.k = t.a AND g = 2)",
     [["`a` < SELECT dim.k AS _zorder_key, `dim`.`k`, `dim`.`g` FROM `db`.dim WHERE g = 2"]]),
    ("SELECT 1 FROM (SELECT a AS x FROM sales) q JOIN dim ON x = k WHERE g = 1",
     [["`a` < SELECT `dim`.`k` AS _zorder_key, `dim`.`k`, `dim`.`g` FROM `db`.dim WHERE g = 1"]]),
    ("SELECT 1 FROM sales LEFT JOIN dim ON a = k AND g = 2", [[]]),
    ("SELECT 1 FROM sales LEFT JOIN dim ON a = k AND b = 2", [[]]),
    ("SELECT 1 FROM dim LEFT JOIN sales ON a = k AND b = 2", [["`b` = 2: b equality"]]),
    ("SELECT 1 FROM dim LEFT JOIN sales ON a = k WHERE b = 2", [["`b` = 2: b equality"]]),
    ("SELECT 1 FROM sales LEFT ANTI JOIN dim ON a = k AND g = 2", [[]]),
    ("SELECT 1 FROM dim LEFT SEMI JOIN sales ON k = a AND g = 2", [[]]),
    ("SELECT 1 FROM sales x JOIN sales y USING (a) WHERE y.b = 3",
     [["`a` < SELECT `y`.`a` AS _zorder_key, `y`.`b` FROM `db`.sales AS y WHERE y.b = 3"],
      ["`b` = 3: b equality", "`a` < "]]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), READINGS)
def test_readings(statement: str, expected: list[list[str]]) -> None:
    workload = read(statement)
    found = [
        [
            *(f"{p.sql}: " + ", ".join(f"{c} {kind}" for c, kind in p.uses) for p in r.predicates),
            *(f"{j.column} < {j.other}" for j in r.joins),
        ]
        for r in workload.readings.elements()
    ]
    assert sorted(found) == sorted(expected)
    assert dict(workload.unread) == {}
    assert workload.statements == 1


#: (a statement, why part of it is left out, how many scans are still counted)
LEFT_OUT = [
    ("SELEC (", "statements that sqlglot cannot parse", 0),
    ("SET x = y", "statements other than queries", 0),
    ("CREATE VIEW w AS SELECT * FROM sales WHERE a = 1", "statements other than queries", 0),
    ("SELECT 1 FROM sales WHERE nowhere = 3", "filters with unknown names", 1),
    ("SELECT 1 FROM (SELECT a FROM sales LIMIT 3) WHERE a = 3",
     "filters on a subquery with LIMIT, a window function, EXCEPT or similar", 1),
    ("SELECT 1 FROM (SELECT a, row_number() OVER (ORDER BY b) AS n FROM sales) WHERE a = 1",
     "filters on a subquery with LIMIT, a window function, EXCEPT or similar", 1),
    ("SELECT 1 FROM (SELECT a, sum(b) AS t FROM sales GROUP BY a) WHERE t = 3",
     "filters on aggregates or similar columns of a subquery", 1),
    ("SELECT 1 FROM sales WHERE a = (SELECT max(k) FROM dim)",
     "filters with a subquery other than IN or EXISTS", 1),
    ("SELECT 1 FROM sales WHERE a NOT IN (SELECT k FROM dim)",
     "filters with a subquery other than IN or EXISTS", 1),
    ("SELECT 1 FROM sales, dim WHERE a = 1 AND g = 1 OR a = 2 AND g = 2",
     "filters on columns of several tables", 1),
    ("SELECT 1 FROM dim LEFT JOIN sales ON a = k WHERE b IS NULL",
     "filters or join keys on the optional side of an outer join", 1),
    ("SELECT 1 FROM (SELECT a FROM sales GROUP BY a) q JOIN dim ON a = k WHERE g = 1",
     "join keys on a subquery with GROUP BY, DISTINCT or UNION", 1),
    ("SELECT 1 FROM temp WHERE a = 1", "temporary views of DataFrames, which have no SQL text", 0),
    ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT 1 FROM r, sales",
     "statements with WITH RECURSIVE", 0),
    ("SELECT * FROM (sales) WHERE a = 5", "statements with tables in parentheses", 0),
    ("SELECT 1 FROM sales s JOIN other.sales s ON s.a = 1",
     "statements with two tables or subqueries of the same name", 0),
    ("SELECT * FROM sales PIVOT (sum(b) FOR s IN ('x', 'y'))", "statements with PIVOT", 0),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "reason", "readings"), LEFT_OUT)
def test_left_out(statement: str, reason: str, readings: int) -> None:
    workload = read(statement)
    assert dict(workload.unread) == {reason: 1}
    assert workload.readings.total() == readings
    assert workload.examples[reason]


def test_use_changes_the_database() -> None:
    assert read("SELECT 1 FROM sales", database="x").readings.total() == 0
    assert read("USE db", "SELECT 1 FROM sales", database="x").readings.total() == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a", ["a"]),
        ("a; b ;\n", ["a", "b"]),
        ("SELECT ';' -- not; here\n; b", ["SELECT ';' -- not; here", "b"]),
        ("/* ; */ a;;b", ["/* ; */ a", "b"]),
    ],
)
def test_split(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_texts_that_are_no_statements() -> None:
    assert statements_of(["SELECT 1; SELECT 2", "SELECT 'open"]) == [
        "SELECT 1", "SELECT 2", "SELECT 'open"
    ]  # fmt: skip
    assert not is_query("SELECT 'open")
    assert not is_query(f"SELECT {'(' * 3000}1{')' * 3000}")


def test_an_open_quote_is_said() -> None:
    with pytest.raises(NotUnderstood, match="split into statements"):
        split("SELECT 'open")
