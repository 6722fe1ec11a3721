"""A repeated OPTIMIZE keeps the layout, because its defaults are the options of the previous
OPTIMIZE."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyzorder import bridge, report
from pyzorder.advisor import advise
from pyzorder.cli.app import app
from tests.support.sampled import long
from tests.support.tables import data_files, metrics, size_of

TARGET_SIZE = "spark.sql.zorder.optimize.targetFileSize"
FILES = 16


@pytest.fixture(params=long(["path", "table"], "table"))
def target(
    request: pytest.FixtureRequest, spark: SparkSession, database: str, tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """Creates a table with one file of about 8 MB. Returns the name that statements use for the
    table, and the table's folder."""
    folder = tmp_path / "t"
    rows(spark).write.parquet(str(folder))
    if request.param == "table":
        spark.sql(f"CREATE TABLE {database}.t USING parquet LOCATION '{folder}'")
    yield (f"{database}.t" if request.param == "table" else f"'{folder}'"), folder


def rows(spark: SparkSession, count: int = 400_000) -> Any:
    """Incompressible rows of about 20 bytes each."""
    return spark.range(0, count, 1, 1).select(
        (F.xxhash64("id") % 100_000).cast("int").alias("a"),
        (F.xxhash64("id", F.lit(1)) % 100_000).cast("int").alias("b"),
        F.xxhash64("id", F.lit(2)).alias("c"),
    )


def optimize(spark: SparkSession, words: str, size: int | None = None) -> Any:
    """Runs OPTIMIZE and returns its metrics. The target size, if given, is set only for this
    statement."""
    if size is not None:
        spark.conf.set(TARGET_SIZE, str(size))
    try:
        return metrics(spark.sql(f"OPTIMIZE {words}"))
    finally:
        spark.conf.unset(TARGET_SIZE)


def clustered(spark: SparkSession, target: tuple[str, Path]) -> list[Path]:
    """Clusters the table by a and b into 16 files, and returns these files."""
    name, folder = target
    optimize(spark, f"{name} ZORDER BY (a, b)", size_of(folder) // FILES)
    return data_files(folder)


def command(spark: SparkSession, *arguments: str) -> Any:
    """Runs a command line in the shared session."""
    return CliRunner().invoke(app, arguments, obj=spark, prog_name="pyzorder")


@pytest.mark.parametrize("words", ["", " ZORDER BY (a, b)"])
def test_the_next_day(spark: SparkSession, target: tuple[str, Path], words: str) -> None:
    files = clustered(spark, target)
    assert optimize(spark, target[0] + words)["numFilesRemoved"] == 0
    done = command(spark, "optimize", target[0].strip("'"), "--quiet")
    assert done.exit_code == 0, done.output
    assert data_files(target[1]) == files


def test_new_files_are_laid_out_like_the_old(spark: SparkSession, target: tuple[str, Path]) -> None:
    clustered(spark, target)
    rows(spark).write.mode("append").parquet(str(target[1]))
    found = optimize(spark, target[0])
    assert found["clusteringColumns"] == ["a", "b"]
    assert 24 <= len(data_files(target[1])) <= 40


def test_curve_and_method(spark: SparkSession, target: tuple[str, Path]) -> None:
    spark.conf.set("spark.sql.zorder.optimize.curve", "linear")
    clustered(spark, target)
    spark.conf.unset("spark.sql.zorder.optimize.curve")
    found = optimize(spark, f"{target[0]} FULL")
    assert found["zOrderStats"]["strategyName"] == "linear"
    assert FILES - 2 <= found["numFilesAdded"] <= FILES  # sorted rows compress better
    spark.conf.set("spark.sql.zorder.optimize.curve", "zorder")
    assert optimize(spark, f"{target[0]} FULL")["zOrderStats"]["strategyName"] == "zorder"


def test_what_goes_before(spark: SparkSession, database: str, tmp_path: Path) -> None:
    target = ("t", tmp_path / "db" / "t")
    rows(spark).write.saveAsTable("t")
    clustered(spark, target)
    size = size_of(target[1])
    assert optimize(spark, "t FULL")["numFilesAdded"] == FILES
    spark.sql(f"ALTER TABLE t SET TBLPROPERTIES ('zorder.optimize.targetFileSize'='{size // 8}')")
    assert optimize(spark, "t FULL")["numFilesAdded"] == 8
    assert optimize(spark, "t FULL", size // 4)["numFilesAdded"] == 4
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('zorder.clusterBy'='b')")
    assert optimize(spark, "t FULL")["clusteringColumns"] == ["b"]
    assert optimize(spark, "t FULL ZORDER BY (c)")["clusteringColumns"] == ["c"]
    spark.sql("ALTER TABLE t UNSET TBLPROPERTIES ('zorder.clusterBy')")
    assert optimize(spark, "t FULL")["clusteringColumns"] == ["c"]


def test_after_restore(spark: SparkSession, target: tuple[str, Path]) -> None:
    name, folder = target
    clustered(spark, target)
    optimize(spark, f"{name} FULL ZORDER BY (c)", size_of(folder) // 4)
    assert optimize(spark, f"{name} FULL DRY RUN")["clusteringColumns"] == ["c"]
    spark.sql(f"RESTORE {name} TO BEFORE OPTIMIZE")
    found = optimize(spark, f"{name} FULL DRY RUN")
    assert found["clusteringColumns"] == ["a", "b"] and found["numFilesAdded"] == FILES
    spark.sql(f"RESTORE {name} TO BEFORE OPTIMIZE")
    with pytest.raises(Exception, match="ZORDER_FULL_WITHOUT_COLUMNS"):
        optimize(spark, f"{name} FULL DRY RUN")


def test_harm_is_refused_unless_wanted(spark: SparkSession, target: tuple[str, Path]) -> None:
    name, folder = target
    files = clustered(spark, target)
    with pytest.raises(Exception, match="ZORDER_SLOWER_LOOKUPS.*100% instead of 25%.*FULL"):
        optimize(spark, name, 256 << 20)
    refused = command(spark, "optimize", name.strip("'"), "--target-size", "256m", "--quiet")
    assert refused.exit_code == 1 and "--force" in refused.stderr
    assert data_files(folder) == files
    done = command(spark, "optimize", name.strip("'"), "--target-size", "256m", "--force")
    assert done.exit_code == 0, done.output
    assert len(data_files(folder)) == 1


def test_one_verdict_at_every_door(
    spark: SparkSession, target: tuple[str, Path], tmp_path: Path
) -> None:
    name, _ = target
    clustered(spark, target)
    spark.conf.set(TARGET_SIZE, str(256 << 20))
    verdict = bridge.verdict(spark, name.strip("'"), [])
    says = verdict["sentence"]
    assert verdict["kind"] == "harms" and "100% instead of 25%" in says
    assert metrics(spark.sql(f"OPTIMIZE {name} DRY RUN"))["remark"] == says
    described = spark.sql(f"DESCRIBE SKIPPING INDEX ON {name}").collect()
    assert {row["verdict"] for row in described} == {f"OPTIMIZE would be rejected. {says}"}
    assert {row["advice"] for row in described} == {None}
    assert says in report.write(spark, name.strip("'"), tmp_path / "r.html").read_text()
    queries = [f"SELECT count(*) FROM {name.replace(chr(39), '`')} WHERE a = {i}" for i in (1, 2)]
    if "/" not in name:
        assert any(says in remark for remark in advise(spark, name, queries, weigh=False).remarks)
    size = ("--conf", f"{TARGET_SIZE}=256m")
    assert says in command(spark, "doctor", name.strip("'"), *size).stdout
    dry = command(spark, "optimize", name.strip("'"), "--dry-run", *size)
    assert dry.stdout.splitlines()[0] == says


def test_forged_layouts_are_ignored(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    rows(spark, 20_000).write.parquet(str(folder))
    optimize(spark, f"'{folder}' ZORDER BY (a)", 100_000)
    (record,) = (folder / "_zorder" / "_journal").glob("*.retire")
    written = json.loads(record.read_text())
    true = {"columns": [["a"]], "targetFileSize": 100_000, "method": "boundaries",
            "curve": "zorder"}  # fmt: skip
    assert written["layout"] == true

    def planned(layout: Any) -> tuple[int, list[str]]:
        record.write_text(json.dumps(written | {"layout": layout}))
        found = optimize(spark, f"'{folder}' DRY RUN")
        return found["numFilesAdded"], found["clusteringColumns"]

    unknown = planned(None)
    assert planned(true) == (0, ["a"]) != unknown
    forged: list[Any] = [
        7, [], {}, {"columns": 7}, {"columns": [[]]}, {"columns": [["a"]] * 64},
        {"columns": [["x" * 5000]]}, {"targetFileSize": 1}, {"targetFileSize": -1},
        {"targetFileSize": "1k"}, {"targetFileSize": 1 << 62}, {"method": "rm"}, {"curve": None},
    ]  # fmt: skip
    for layout in forged:
        changed = true | layout if layout and isinstance(layout, dict) else layout
        assert planned(changed) == unknown, layout
    for columns in ([["no_such_column"]], [["a"], ["a"]]):
        assert planned(true | {"columns": columns}) == (0, ["a"])


@pytest.mark.parametrize(("mega", "size", "files"), [(1, None, 1), (8, None, 8), (8, 256 << 20, 1)])
def test_small_tables_are_cut_into_several_files(
    spark: SparkSession, tmp_path: Path, mega: int, size: int | None, files: int
) -> None:
    folder = tmp_path / "t"
    rows(spark, 60_000 * mega).write.parquet(str(folder))
    dry = optimize(spark, f"'{folder}' ZORDER BY (a, b) DRY RUN", size)
    least = max(1, size_of(folder) >> 20) if size is None else 1
    assert dry["numFilesAdded"] == least and abs(least - files) <= 2
    pays = "Pays off: a lookup would" if least > 1 else "Does not pay off: the data is too small"
    assert dry["remark"].startswith(pays)
    assert ("--target-size" in dry["remark"]) == (size is not None)


def test_tiny_files_are_still_joined(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    rows(spark, 20_000).repartition(50).write.parquet(str(folder))
    remark = optimize(spark, f"'{folder}' DRY RUN")["remark"]
    assert remark == "Pays off: 50 files would become 1 file, so queries would open fewer files."
    remark = optimize(spark, f"'{folder}' ZORDER BY (a, b) DRY RUN")["remark"]
    assert remark.startswith(
        "Pays off, but only because it merges files: 50 files would become 1 file. The data is"
    )
    assert "The data is too small to be divided into files of about " in remark
    assert optimize(spark, f"'{folder}'")["numFilesAdded"] == 1


def test_a_remark_if_no_file_can_be_skipped(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    rows(spark, 150_000).write.parquet(str(folder))
    done = optimize(spark, f"'{folder}' ZORDER BY (a, b)", 8 << 20)
    assert (done["numFilesAdded"], done["dryRun"]) == (1, False)
    assert done["remark"].startswith(
        "The data is too small to be divided into files of about 8 MiB"
    )
    # Files can be skipped after the suggested statement.
    suggested = (
        int(done["remark"].split("targetFileSize=")[1].split("k and OPTIMIZE … FULL")[0]) << 10
    )
    done = optimize(spark, f"'{folder}' FULL ZORDER BY (a, b)", suggested)
    assert done["numFilesAdded"] > 8 and done["remark"] is None
    # With other files in the table, merging a few of them does not make the table small.
    for _ in range(3):
        rows(spark, 10).write.mode("append").parquet(str(folder))
    done = optimize(spark, f"'{folder}' ZORDER BY (a, b)", suggested)
    assert done["numFilesRemoved"] >= 3 and done["remark"] is None


@pytest.mark.parametrize("lost", ["column", "permission"])
def test_columns_that_cannot_be_used_again(
    spark: SparkSession, database: str, tmp_path: Path, lost: str
) -> None:
    """DESCRIBE does not suggest clustering columns that the table no longer has, or that are now
    excluded from the index."""
    create = f"CREATE TABLE {database}.t ({{}}) USING parquet LOCATION '{tmp_path / 't'}'"
    spark.sql(create.format("id BIGINT, y BIGINT"))
    spark.sql(f"INSERT INTO {database}.t SELECT id, id FROM range(50)")
    spark.sql(f"OPTIMIZE {database}.t ZORDER BY (y, id)")
    if lost == "column":
        spark.sql(f"DROP TABLE {database}.t")
        spark.sql(create.format("id BIGINT"))
    else:
        spark.sql(f"ALTER TABLE {database}.t SET TBLPROPERTIES ('zorder.index.denyColumns' = 'y')")
    described = spark.sql(f"DESCRIBE SKIPPING INDEX ON {database}.t").collect()
    (verdict,) = {row["verdict"] for row in described}
    assert {row["advice"] for row in described} == {None}
    assert verdict == (
        "Most files are clustered by y, id, but the table can no longer be clustered by these "
        "columns. Name other columns in ZORDER BY."
    )


def test_why_there_is_nothing_to_do(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE t (a INT, p INT) USING parquet PARTITIONED BY (p)")
    why = {
        "t": "the table has no files",
        "t ZORDER BY (a)": "the table has no files",
        "t WHERE p = 1 ZORDER BY (a)": "WHERE selects no files",
    }
    for words, reason in why.items():
        for dry_run in ("", " DRY RUN"):
            assert optimize(spark, words + dry_run)["remark"] == f"Nothing to do: {reason}."
    spark.sql("CREATE TABLE u (a BIGINT) USING parquet")
    spark.sql("INSERT INTO u SELECT id FROM range(10) WHERE id < 0")
    assert optimize(spark, "u ZORDER BY (a)")["remark"] == "Nothing to do: the files have no rows."


def test_describe_says_why_an_optimize_would_fail(spark: SparkSession, database: str) -> None:
    spark.range(10).write.saveAsTable("t")
    spark.sql("CREATE SKIPPING INDEX ON t")
    spark.sql("ALTER TABLE t SET TBLPROPERTIES ('zorder.clusterBy' = 'gone')")
    (row,) = spark.sql("DESCRIBE SKIPPING INDEX ON t").collect()
    assert row["verdict"].startswith("OPTIMIZE would fail: [ZORDER_") and "gone" in row["verdict"]
    assert row["advice"] is None
