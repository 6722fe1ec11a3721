"""The index reveals no more than the table. It omits denied columns and secrets, and its files have
the same permissions and owner as the table's files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import pyzorder
from tests.support import scans
from tests.support.tables import data_files, rows_of, target_size

DENY = "spark.sql.zorder.index.denyColumns"
ROWS = """SELECT id, 'ssn-' || id AS ssn, named_struct('name', 'secret-' || id, 'age', id) AS person
          FROM range(0, 40, 1, 2)"""


def recorded(table: Path) -> str:
    """Returns the content of all snapshots and pointers as text."""
    index = table / "_zorder" / "_index"
    rows = [str(pq.read_table(path).to_pydict()) for path in sorted(index.glob("_snapshot-*"))]
    return "".join(rows) + "".join(path.read_text() for path in sorted(index.glob("_v*")))


#: Statements that add entries to the index of `t`.
RECORDING: dict[str, Callable[[SparkSession], object]] = {
    "create": lambda spark: spark.sql("CREATE SKIPPING INDEX IF NOT EXISTS ON t"),
    "refresh": lambda spark: spark.sql("REFRESH SKIPPING INDEX ON t"),
    "insert": lambda spark: spark.sql(f"INSERT INTO t {ROWS}"),
    "optimize": lambda spark: spark.sql("OPTIMIZE t FULL ZORDER BY (id)"),
    "direct": lambda spark: spark.sql("OPTIMIZE t FULL ZORDER BY (id, person.age)"),
    "compaction": lambda spark: spark.sql("OPTIMIZE t"),
    "restore": lambda spark: spark.sql("RESTORE t TO BEFORE OPTIMIZE"),
}


@pytest.mark.parametrize("by", ["session", "table", "both"])
def test_denied_columns(spark: SparkSession, database: str, tmp_path: Path, by: str) -> None:
    """No statement records values of denied columns, and values that were recorded earlier are
    deleted."""
    spark.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
    spark.sql("CREATE SKIPPING INDEX ON t")
    table = tmp_path / "db" / "t"
    assert "ssn-" in recorded(table) and "secret-" in recorded(table)
    expected = rows_of(spark.table("t"))
    denied = {
        "session": ("SSN, person.name", ""),
        "table": ("", "ssn, `Person`.`name`"),
        "both": ("ssn", "person.NAME"),
    }[by]
    spark.sql(f"ALTER TABLE t SET TBLPROPERTIES ('zorder.index.denyColumns' = '{denied[1]}')")
    with scans.settings(spark, **{DENY.replace(".", "__"): denied[0]}):
        for what in ("refresh", "optimize", "restore", "direct", "compaction", "refresh"):
            method = "direct" if what == "direct" else "boundaries"
            spark.conf.set("spark.sql.zorder.optimize.method", method)
            RECORDING[what](spark)
            assert "ssn" not in recorded(table) and "secret-" not in recorded(table), what
        assert rows_of(spark.table("t")) == expected
        RECORDING["insert"](spark)
        spark.sql("DROP SKIPPING INDEX ON t")
        RECORDING["create"](spark)
        assert "ssn" not in recorded(table) and "secret-" not in recorded(table)
        assert "person.age_maxValue" in recorded(table)
        for statement in ("OPTIMIZE t ZORDER BY (id, ssn)", "OPTIMIZE t ZORDER BY (person.name)"):
            with pytest.raises(AnalysisException, match="ZORDER_DENIED_COLUMN"):
                spark.sql(statement)
        spark.sql("DROP SKIPPING INDEX ON t")
        with pytest.raises(AnalysisException, match="ZORDER_DENIED_COLUMN"):
            spark.sql("CREATE SKIPPING INDEX ON t (ssn)")
        with pytest.raises(AnalysisException, match="ZORDER_INVALID_SETTING.*list columns"):
            spark.conf.set(DENY, "a b, ,")


def test_a_denied_struct(spark: SparkSession, database: str, tmp_path: Path) -> None:
    spark.sql(
        f"CREATE TABLE t USING orc TBLPROPERTIES ('zorder.index.denyColumns' = 'person') AS {ROWS}"
    )
    spark.sql("CREATE SKIPPING INDEX ON t")
    text = recorded(tmp_path / "db" / "t")
    assert "person" not in text and "secret-" not in text and "ssn-" in text


def test_deleted_snapshots_leave_no_gap(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Readers conclude that a version is the newest if the next one does not exist."""
    spark.sql(f"CREATE TABLE t USING parquet AS {ROWS}")
    spark.sql("CREATE SKIPPING INDEX ON t (id)")
    spark.sql("OPTIMIZE t FULL ZORDER BY (ssn)")
    assert "ssn-" in recorded(tmp_path / "db" / "t")
    with scans.settings(spark, **{DENY.replace(".", "__"): "ssn"}):
        spark.sql("REFRESH SKIPPING INDEX ON t")
    index = tmp_path / "db" / "t" / "_zorder" / "_index"
    versions = sorted(int(file.stem.removeprefix("_v")) for file in index.glob("_v*.json"))
    assert len(versions) == versions[-1] - versions[0] + 1
    assert "ssn-" not in recorded(tmp_path / "db" / "t")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("given", [0o700, 0o711, 0o777])
def test_permissions(spark: SparkSession, tmp_path: Path, given: int) -> None:
    """pyzorder's folders have the same permissions as the table's folder. pyzorder's files also
    have these permissions, except for the execute permission."""
    table = tmp_path / "t"
    spark.range(0, 20, 1, 2).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(
        str(table)
    )
    owner = (os.geteuid(), os.getegid())
    if owner[0] == 0:
        owner = (12345, 23456)
    os.chown(table, *owner)
    table.chmod(given)
    spark.sql(f"OPTIMIZE '{table}' ZORDER BY (id)")
    spark.sql(f"REFRESH SKIPPING INDEX ON '{table}'")
    spark.sql(f"RESTORE '{table}' TO BEFORE OPTIMIZE")
    below = [table / "_zorder", *(table / "_zorder").rglob("*")]
    assert {"_index", "_journal", "_retired"} <= {path.name for path in below}
    for path in below:
        if path.suffix != ".retired":
            assert mode(path) == (given if path.is_dir() else given & 0o666), path
            assert (path.stat().st_uid, path.stat().st_gid) == owner, path


SECRET = "hunter2-xyzzy"


@contextmanager
def logged(spark: SparkSession, file: Path) -> Iterator[None]:
    """Writes everything that pyzorder logs, at any level, to the file."""
    jvm = spark._jvm
    core = jvm.org.apache.logging.log4j.core
    context = jvm.org.apache.logging.log4j.LogManager.getContext(False)
    appender = (
        core.appender.FileAppender.newBuilder().withFileName(str(file)).setName("secrets")
        .setLayout(core.layout.PatternLayout.createDefaultLayout()).build()
    )  # fmt: skip
    appender.start()
    level = jvm.org.apache.logging.log4j.Level
    core.config.Configurator.setLevel("io.pyzorder", level.ALL)
    context.getLogger("io.pyzorder").addAppender(appender)
    try:
        yield
    finally:
        context.getLogger("io.pyzorder").removeAppender(appender)
        core.config.Configurator.setLevel("io.pyzorder", level.ERROR)
        appender.stop()


def test_secrets_are_not_revealed(spark: SparkSession, database: str, tmp_path: Path) -> None:
    """Secrets do not appear in logs, errors, plans or files that pyzorder writes."""
    said = []
    with (
        logged(spark, tmp_path / "log"),
        scans.settings(spark, fs__s3a__secret__key=SECRET, spark__hadoop__fs__s3a__key=SECRET),
    ):
        spark.sql(
            "CREATE TABLE t (id BIGINT, p INT) USING parquet PARTITIONED BY (p) "
            f"OPTIONS ('fs.s3a.secret.key' '{SECRET}', 'password' '{SECRET}')"
        )
        spark.range(0, 30, 1, 3).selectExpr("id", "id % 2").write.insertInto("t")
        target_size(spark, 1)
        table = tmp_path / "db" / "t"
        spark.sql("OPTIMIZE t ZORDER BY (id)")
        spark.sql("INSERT INTO t SELECT id, 0 FROM range(3)")
        query = "SELECT * FROM t WHERE id = 7"
        said.append(str(spark.sql(f"EXPLAIN EXTENDED {query}").collect()))
        said.append(str(pyzorder.explain(spark.sql(query))))
        said.append(str(spark.sql("DESCRIBE SKIPPING INDEX ON t").collect()))
        for statement in (
            "OPTIMIZE t ZORDER BY (nowhere)",
            "OPTIMIZE t WHERE id = 1 ZORDER BY (id)",
            "RESTORE t TO BEFORE",
            "OPTIMIZE 's3a:////' ZORDER BY (id)",
            f"OPTIMIZE '{table}/p=0' ZORDER BY (id)",
        ):
            with pytest.raises(Exception) as error:
                spark.sql(statement)
            said.append(str(error.value))
        data_files(table)[0].write_bytes(b"no data")
        with pytest.raises(Exception) as error:
            spark.sql("OPTIMIZE t FULL ZORDER BY (id)")
        said.append(str(error.value))
        for file in (table / "_zorder" / "_index").glob("_*"):
            file.write_bytes(b"broken")
        spark.sql("SELECT count(*) FROM t WHERE id > 3 AND p = 1").collect()
        frame = spark.read.schema("id BIGINT, p INT").option("password", SECRET).parquet(str(table))
        said.append(str(pyzorder.explain(frame.where("p = 1 AND id > 3"))))
        for path in (table / "_zorder").rglob("*"):
            if path.is_file():
                said.append(path.read_bytes().decode("latin-1"))
    log = (tmp_path / "log").read_text()
    assert "cannot be used" in log  # proves that the log contains pyzorder's messages
    assert not [text for text in [*said, log] if SECRET in text]


def test_passwords_in_paths(spark: SparkSession) -> None:
    errors = spark._jvm.io.pyzorder.common.ZOrderErrors
    error = errors.pathNotFound("s3a://AKIA:hunter2%2Fx@bucket/t")
    assert "hunter2" not in error.getMessage() + str(error.getMessageParameters())
    assert "s3a://***@bucket/t" in error.getMessage()
