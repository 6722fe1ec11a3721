"""Statements and queries work through Spark's Thrift server with JDBC, PyHive and SQLAlchemy. BI
tools connect through these clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
import sqlalchemy

from tests.bi.clients import Client, Jdbc, PyHive, SqlAlchemy, compile_jdbc_client
from tests.spark.test_thrift_server import create, files_selected

QUERY = "SELECT id, a, b FROM {t} WHERE a = 123 AND b < 40"

#: (statement, number of result columns or None if it may vary, minimum number of rows)
STATEMENTS = [
    ("OPTIMIZE {t} ZORDER BY (a, b) DRY RUN", 2, 1),
    ("OPTIMIZE {t} ZORDER BY (a, b)", 2, 1),
    ("DESCRIBE SKIPPING INDEX ON {t}", None, 3),
    ("SELECT * FROM skipping_index('{t}')", None, 9),
    ("SELECT * FROM optimize_history('{t}')", 14, 1),
    ("REFRESH SKIPPING INDEX ON {t}", None, 0),
    ("VACUUM {t} DRY RUN", 1, 0),
    ("SELECT zorder_value(a, b), interleave_bits(1, 2) FROM {t} WHERE a = 7", 2, 50),
]

#: Calls that tools make before they show a table: (method, arguments, result column to check, value
#: that this column must have in at least one row). {t} is the table. If the value is empty, the
#: column is not checked.
METADATA: list[tuple[str, list[Any], str, str]] = [
    ("getCatalogs", [], "TABLE_CAT", ""),
    ("getSchemas", [], "TABLE_SCHEM", "default"),
    ("getSchemas", [None, "def%"], "TABLE_SCHEM", "default"),
    ("getTableTypes", [], "TABLE_TYPE", "TABLE"),
    ("getTables", [None, "default", "{t}", ["TABLE", "VIEW"]], "TABLE_NAME", "{t}"),
    ("getTables", [None, "%", "%", None], "TABLE_NAME", "{t}"),
    ("getColumns", [None, "default", "{t}", "%"], "COLUMN_NAME", "a"),
    ("getTypeInfo", [], "TYPE_NAME", "BIGINT"),
]

#: (condition with parameters, types and values of the parameters, number of matching rows)
PREPARED: list[tuple[str, list[tuple[str, object]], int]] = [
    ("a = ?", [("int", 123)], 50),
    ("a BETWEEN ? AND ?", [("long", 10), ("long", 19)], 500),
    ("s = ?", [("string", "it's 7")], 200),
    ("d < ?", [("double", 2.5)], 13),
    ("t = ?", [("date", "2024-02-01")], 200),
    ("u >= ? AND u < ?", [("timestamp", "2024-01-01 00:00:00"),
                          ("timestamp", "2024-01-01 01:00:00")], 3600),
    ("(a = 1) = ?", [("boolean", True)], 50),
]  # fmt: skip


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_jdbc_client(tmp_path_factory.mktemp("jdbc"))


@pytest.fixture(scope="module")
def jdbc(thrift_server: int, classes: Path) -> Iterator[Jdbc]:
    client = Jdbc(thrift_server, classes)
    yield client
    client.close()


@pytest.fixture(
    params=[
        pytest.param("jdbc", marks=pytest.mark.bi),
        pytest.param("pyhive", marks=pytest.mark.bi),
        "sqlalchemy",
    ]
)
def client(request: pytest.FixtureRequest, thrift_server: int) -> Iterator[Client]:
    if request.param == "jdbc":
        yield request.getfixturevalue("jdbc")
        return
    made: Client = (PyHive if request.param == "pyhive" else SqlAlchemy)(thrift_server)
    yield made
    made.close()


@pytest.fixture
def table(client: Client) -> Iterator[str]:
    name = f"of_{type(client).__name__.lower()}"
    client.rows(create(name))
    yield name
    client.rows(f"DROP TABLE {name}")


def test_statements(client: Client, table: str) -> None:
    query = QUERY.format(t=table)
    before = sorted(client.rows(query))
    assert before == sorted(
        [str(i), "123", str(i // 400 * 7 % 50)]
        for i in range(123, 20000, 400)
        if i // 400 * 7 % 50 < 40
    )
    for statement, columns, least in STATEMENTS:
        found = client.rows(statement.format(t=table))
        assert len(found) >= least, statement
        assert all(columns in (None, len(row)) for row in found), statement
    assert sorted(client.rows(query)) == before
    plan = "\n".join(str(row[0]) for row in client.rows(f"EXPLAIN {query}"))
    selected, total = files_selected(plan)
    assert 1 <= selected <= total // 2


@pytest.mark.bi
def test_result_columns_by_jdbc(jdbc: Jdbc) -> None:
    """ResultSetMetaData contains the name, type and size of each result column, and the client can
    read every value as an object."""
    jdbc.rows(create("by_jdbc"))
    for statement, _, least in STATEMENTS:
        found = jdbc.query(statement.format(t="by_jdbc"))
        for column in found["columns"]:
            assert column["name"] == column["label"] and column["name"], column
            assert column["typeName"] and column["className"], column
            assert column["displaySize"] > 0 and column["precision"] >= 0, column
        assert len(found["rows"]) >= least
    (health,) = (row for row in jdbc.rows("DESCRIBE SKIPPING INDEX ON by_jdbc") if row[0] == "a")
    assert None not in health[:3]
    jdbc.rows("DROP TABLE by_jdbc")


@pytest.mark.bi
@pytest.mark.parametrize(("call", "arguments", "column", "value"), METADATA)
def test_metadata_calls(
    jdbc: Jdbc, call: str, arguments: list[Any], column: str, value: str
) -> None:
    jdbc.rows("CREATE TABLE IF NOT EXISTS seen_by_tools (a INT, b STRING) USING parquet")
    jdbc.rows("CREATE SKIPPING INDEX IF NOT EXISTS ON seen_by_tools")
    given = ["seen_by_tools" if argument == "{t}" else argument for argument in arguments]
    found = jdbc.metadata(call, *given)
    at = [described["name"].upper() for described in found["columns"]].index(column)
    assert value.replace("{t}", "seen_by_tools") in [row[at] for row in found["rows"]] or not value


@pytest.mark.bi
def test_prepared_statements(jdbc: Jdbc) -> None:
    jdbc.rows(
        "CREATE TABLE prepared USING parquet AS SELECT /*+ REPARTITION(16) */ id % 400 AS a, "
        "concat('it\\'s ', id % 100) AS s, id / 5.0D AS d, date'2024-01-01' + int(id % 100) AS t, "
        "timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, 0, 0, 0, id) AS u FROM range(20000)"
    )
    try:
        jdbc.rows("OPTIMIZE prepared ZORDER BY (a, d)")
        for condition, values, expected in PREPARED:
            found = jdbc.prepared(f"SELECT * FROM prepared WHERE {condition}", *values)
            assert len(found["rows"]) == expected, condition
    finally:
        jdbc.rows("DROP TABLE prepared")


def test_pandas_reads_a_query(thrift_server: int) -> None:
    """pandas can run a query with `read_sql_query`. `read_sql`, in contrast, would look for a table
    whose name is the text of the query."""
    client = SqlAlchemy(thrift_server)
    client.rows(create("of_pandas"))
    client.rows("OPTIMIZE of_pandas ZORDER BY (a, b)")
    query = sqlalchemy.text("SELECT id FROM of_pandas WHERE a = :a AND b < 40 ORDER BY id")
    found = pandas.read_sql_query(query, client.engine, params={"a": 7})
    assert list(found["id"]) == [i for i in range(7, 20000, 400) if i // 400 * 7 % 50 < 40]
    client.rows("DROP TABLE of_pandas")
    client.close()


def test_sqlalchemy_reflects_and_selects(thrift_server: int) -> None:
    client = SqlAlchemy(thrift_server)
    client.rows(create("reflected"))
    client.rows("OPTIMIZE reflected ZORDER BY (a, b)")
    inspector = sqlalchemy.inspect(client.engine)
    assert [column["name"] for column in inspector.get_columns("reflected")] == ["a", "b", "id"]
    table = sqlalchemy.Table("reflected", sqlalchemy.MetaData(), autoload_with=client.engine)
    query = sqlalchemy.select(table.c.id, sqlalchemy.func.max(table.c.b).label("most")).where(
        table.c.a == 7, table.c.b < 40
    ).group_by(table.c.id).order_by(table.c.id)  # fmt: skip
    with client.engine.connect() as connection:
        found = [row.id for row in connection.execute(query)]
    assert found == [i for i in range(7, 20000, 400) if i // 400 * 7 % 50 < 40]
    client.rows("DROP TABLE reflected")
    client.close()
