"""Tests the command-line tool in the shared session, and Ctrl-C in separate processes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import click
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import bridge
from pyzorder.cli import sessions
from pyzorder.cli.app import app
from pyzorder.cli.options import Settings
from tests.support.processes.command_line import ENVIRONMENT, command, stopped
from tests.support.processes.servers import free_port
from tests.support.tables import data_files

ROWS = 4000
FILES = 8
SMALL = ("--conf", "spark.sql.zorder.optimize.targetFileSize=4k")

# (arguments, exit code, text on stderr). {folder} and {table} contain the same rows.
REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("optimize",), 2, "Missing argument 'TARGET'"),
    (("optimize", "a,b", "--zorder-by", "a"), 2, "names several tables"),
    (("optimize", "{table}", "--zorder-by", "a,"), 2, "is not a list of names"),
    (("optimize", "{table}", "--conf", "x"), 2, "write --conf key=value"),
    (("optimize", "{table}", "--remote", "sc://x", "--hive"), 2, "where that server is started"),
    (("optimize", "nowhere", "--zorder-by", "a"), 1, "[ZORDER_TABLE_NOT_FOUND]"),
    (("optimize", "/no/where", "--zorder-by", "a"), 1, "[ZORDER_PATH_NOT_FOUND]"),
    (("optimize", "{table}", "--zorder-by", "zz"), 1, "zz"),
    (("optimize", "{table}", "--zorder-by", "a) DRY RUN --"), 1, "a) DRY RUN --"),
    (("optimize", "{table}", "--where", "a = 1"), 1, "[ZORDER_"),
    (("optimize", "{table}", "--where", "true) ZORDER BY (a"), 2, "is not a single SQL condition"),
    (("optimize", "{table}", "--where", "day ="), 2, "Invalid value for --where"),
    (("optimize", "{table}", "--conf", "spark.sql.zorder.optimize.curve=round"), 1, "round"),
    (("describe", "{unindexed}"), 1, "CREATE SKIPPING INDEX"),
    (("describe", "{table}", "--openmetrics", "--json"), 2, "choose one"),
    (("describe", "{table}", "--where", "a = 7"), 2, "--openmetrics"),
    (
        ("describe", "{table}", "--openmetrics", "--where", "a ="),
        2,
        "is not a single SQL condition",
    ),
    (("restore", "{unindexed}"), 1, "[ZORDER_"),
    (("history", "/no/where"), 1, "[ZORDER_PATH_NOT_FOUND]"),
    (("history", "nowhere"), 1, "[ZORDER_TABLE_NOT_FOUND] The catalog has no table nowhere"),
    (("vacuum", "{table}", "--retain-hours", "0"), 1, "[ZORDER_"),
    (("vacuum", "{table}", "--retain-hours", "-1"), 2, "--retain-hours"),
    (("explain", "DROP TABLE {table}"), 1, "[PARSE_SYNTAX_ERROR]"),
    (("explain", "INSERT INTO {table} SELECT * FROM {table}"), 1, "[PARSE_SYNTAX_ERROR]"),
    (("explain", "./sales"), 2, "not a query. To explain a query on a folder, name"),
    (("explain", "SELECT nothing FROM {table}"), 1, "[UNRESOLVED_COLUMN"),
    (("explain", "SELECT 1 FROM nowhere"), 1, "[ZORDER_TABLE_NOT_FOUND] The catalog has no table"),
    (("advise", "{table}"), 1, "--queries FILE or --event-log DIR"),
    (("advise", "{table}", "--queries", "/no/where.sql"), 2, "does not exist"),
    (("advise", "{table}", "--queries", "-", "--max-columns", "5"), 2, "--max-columns"),
    (("advise", "{table}", "--event-log", "/no/where"), 1, "[ZORDER_NO_EVENT_LOG]"),
    (("advise", "/no/where", "--queries", "-"), 1, "[ZORDER_PATH_NOT_FOUND]"),
    (("plot", "-o", "x.png"), 2, "Pass either a TARGET, to draw its files, or --curve"),
    (("plot", "{table}", "--curve", "zorder", "-o", "x.png"), 2, "or --curve"),
    (("plot", "{table}", "a"), 2, "Missing option '--output'"),
    (("plot", "{table}", "a", "-o", "x.pdf"), 2, "[ZORDER_PICTURE_FORMAT]"),
    (("plot", "{table}", "a", "id", "day", "-o", "x.png"), 2, "[ZORDER_RECTANGLE_COLUMNS]"),
    (("plot", "{table}", "zz", "-o", "x.png"), 1, "zz"),
    (("plot", "{table}", "a", "--where", "a =", "-o", "x.png"), 2, "--where"),
    (
        ("plot", "{table}", "a", "--where", "a = 1", "--depth", "-o", "x.png"),
        2,
        "--where highlights",
    ),
    (("plot", "{table}", "a", "-o", "/dev/null/x.png"), 2, "/dev/null/x.png cannot be written"),
    (("report", "{table}", "-o", "/dev/null/x.html"), 2, "/dev/null/x.html cannot be written"),
    (("report", "{table}", "-o", "/proc/x.html"), 2, "/proc/x.html cannot be written"),
    (("report", "nowhere", "-o", "x.html"), 1, "nowhere"),
    (("report", "{table}", "a", "--where", "a = 1; --", "-o", "x.html"), 2, "--where"),
    (("report", "{table}", "zz", "-o", "x.html"), 1, "zz"),
]

# (arguments, text in the file that the command writes)
PICTURES: list[tuple[tuple[str, ...], str]] = [
    (("plot", "{folder}", "a", "`b, c`", "--where", "a < 9", "-o", "{out}.svg"), "a &lt; 9"),
    (("plot", "{table}", "id", "--ranks", "-o", "{out}.svg"), "cli_table"),
    (("plot", "{table}", "id,a", "day", "--depth", "-o", "{out}.svg"), "day"),
    (("plot", "--curve", "hilbert", "-o", "{out}.svg"), "hilbert"),
    (("report", "{folder}", "a", "--where", "a < 9", "-o", "{out}.html"), "CREATE SKIPPING INDEX"),
    (("report", "{table}", "-o", "{out}.html"), "not clustered"),
]

# (signal, the step during which it arrives, exit code)
STOPPED = [
    (signal.SIGINT, "lay out the new files …", 130),
    pytest.param(signal.SIGTERM, "lay out the new files …", 143, marks=pytest.mark.crash),
    pytest.param(signal.SIGINT, "read file footers", 130, marks=pytest.mark.crash),
    pytest.param(signal.SIGINT, "sample the clustering columns …", 130, marks=pytest.mark.crash),
    pytest.param(signal.SIGINT, "lay out the new files:", 130, marks=pytest.mark.crash),
    pytest.param(signal.SIGINT, "count the rows", 130, marks=pytest.mark.crash),
]


def write(spark: SparkSession, rows: int, folder: Path) -> None:
    """Writes rows in which the column `id` counts up from 0."""
    spark.range(0, rows, 1, FILES).selectExpr(
        "id", "xxhash64(id) % 1000 AS a", "xxhash64(id, 7) % 1000 AS `b, c`", "id % 9 AS day"
    ).write.parquet(str(folder))


def ids(folder: Path) -> list[int]:
    """The ids that an engine without pyzorder would read from the folder's files."""
    columns = [pyarrow.parquet.read_table(f, columns=["id"])["id"] for f in data_files(folder)]
    return sorted(value for column in columns for value in column.to_pylist())


@pytest.fixture(scope="module")
def places(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Tables and folders that no test changes."""
    root = tmp_path_factory.mktemp("cli")
    write(spark, ROWS, root / "o'dd `folder")
    write(spark, ROWS, root / "plain")
    spark.sql(f"CREATE TABLE cli_table USING parquet LOCATION '{root / 'plain'}'")
    spark.sql("CREATE SKIPPING INDEX ON cli_table")
    yield {
        "folder": root / "o'dd `folder",
        "table": "cli_table",
        "unindexed": root / "o'dd `folder",
    }
    spark.sql("DROP TABLE cli_table")


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Path:
    """A folder for a test that changes it."""
    write(spark, ROWS, tmp_path / "t")
    return tmp_path / "t"


def invoke(spark: SparkSession, *arguments: str) -> Result:
    """Runs a command in the shared session and returns its output."""
    return CliRunner().invoke(app, arguments, obj=spark, prog_name="pyzorder")


def result_of(spark: SparkSession, *arguments: str) -> Any:
    """Returns the JSON that a command prints. Asserts that the command succeeds."""
    done = invoke(spark, *arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_recorded_workload(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    spark.range(50).write.parquet(path)
    assert "Nothing has been recorded" in invoke(spark, "workload", path).stdout
    spark.conf.set("spark.sql.zorder.workload.record", "true")
    for number in range(3):
        spark.read.parquet(path).where(f"id = {number}").collect()
    bridge.flush_workload(spark)
    [row] = result_of(spark, "workload", path)
    assert (row["filters"], row["join_keys"], row["queries"]) == ("(id = ?)", [], 3)
    assert sum(row["days"].values()) == 3
    assert "(id = ?)" in invoke(spark, "workload", path).stdout
    assert result_of(spark, "advise", path)["statements"] == 3
    cleared = invoke(spark, "workload", path, "--clear").stdout
    assert cleared == f"The recorded workload of {path} has been deleted.\n"
    assert result_of(spark, "workload", path) == []


@pytest.mark.variants
@pytest.mark.parametrize(("arguments", "code", "says"), REFUSED)
def test_refused(
    spark: SparkSession,
    places: dict[str, Any],
    arguments: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    done = invoke(spark, *(word.format(**places) for word in arguments))
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    last = done.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and says in last
    assert "Traceback" not in done.stderr and "SQLSTATE" not in last


def test_targets(spark: SparkSession, places: dict[str, Any]) -> None:
    root = places["folder"].parent
    targets = {
        "cli_table": root / "plain",
        "default.`cli_table`": root / "plain",
        f"parquet.`{root / 'plain'}`": root / "plain",
        str(places["folder"]): places["folder"],
        "parquet.`" + str(places["folder"]).replace("`", "``") + "`": places["folder"],
    }
    for target, path in targets.items():
        found = result_of(spark, "optimize", target, "--zorder-by", "a,`b, c`", "--dry-run")
        assert found["path"].removeprefix("file:").replace("%20", " ").replace("%60", "`") == str(
            path
        )
        assert found["metrics"]["clusteringColumns"] == ["a", "b, c"]
        assert found["metrics"]["dryRun"] and found["metrics"]["numFilesRemoved"] == FILES


def test_optimize_and_what_follows(spark: SparkSession, folder: Path) -> None:
    path = str(folder)
    old = data_files(folder)
    dry = invoke(spark, "optimize", path, "--zorder-by", "a,day", "--dry-run", *SMALL)
    assert "would replace 8 files" in dry.stdout and "per 1% range" in dry.stdout
    assert data_files(folder) == old

    done = invoke(spark, "optimize", path, "--columns", "a", "--columns", "day", *SMALL)
    assert done.exit_code == 0, done.output
    assert "replaced 8 files" in done.stdout and "clustered by a, day" in done.stdout
    steps = [line.split(":")[0].removesuffix(" …") for line in done.stderr.splitlines()]
    assert list(dict.fromkeys(steps))[-4:] == [
        "read file footers",
        "sample the clustering columns",
        "lay out the new files",
        "count the rows of old and new files",
    ]
    new = data_files(folder)
    assert not set(new) & set(old) and ids(folder) == list(range(ROWS))
    again = invoke(spark, "optimize", path, "--zorder-by", "a,day", "--quiet", *SMALL)
    assert again.stdout == "Nothing to do: the files are already clustered by a, day.\n"
    assert again.stderr == ""

    index = result_of(spark, "describe", path)
    assert {row["column"]: row["clustered"] for row in index}["a"] == len(new)
    told = invoke(spark, "describe", path)
    assert "lookup opens" in told.stdout
    assert told.stdout.endswith("Nothing to do: the files are already clustered by a, day.\n")

    query = f"SELECT * FROM parquet.`{path}` WHERE a = 7"
    gauges = invoke(spark, "describe", path, "--openmetrics", "--where", "a = 7").stdout
    families = {family.name: family for family in text_string_to_metric_families(gauges)}
    (scan,) = result_of(spark, "explain", query)
    (skipped,) = families["pyzorder_skipped_files_ratio"].samples
    assert skipped.labels == {"table": path, "where": "a = 7"}
    assert skipped.value == pytest.approx(scan["skipped"] / len(new)) and scan["skipped"] > 0
    (retired,) = families["pyzorder_retired_bytes"].samples
    assert retired.value == sum(r["keptBytes"] for r in result_of(spark, "history", path)) > 0
    assert 1 <= scan["selected"] <= len(new) // 2
    assert (
        f"opens {scan['selected']} of {len(new)} files\n" in invoke(spark, "explain", query).stdout
    )
    piped = CliRunner().invoke(app, ["explain", "-", "--json"], obj=spark, input=query)
    assert json.loads(piped.stdout)[0]["opened"] == scan["opened"]

    assert result_of(spark, "vacuum", path, "--dry-run") == []
    emptied = invoke(spark, "vacuum", path, "--dry-run").stdout
    assert emptied.startswith("0 files (0 B) would be deleted.\nReplaced files (")
    assert "are kept for RESTORE until their retention period ends" in emptied
    restored = result_of(spark, "restore", path)
    assert restored["num_restored_files"] == 8 and restored["num_removed_files"] == len(new)
    assert data_files(folder) == old
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    check = ("--conf", "spark.sql.zorder.vacuum.retentionCheck=false")
    deleted = result_of(spark, "vacuum", path, "--retain", "0", *check)
    assert len(deleted) >= len(new) and ids(folder) == list(range(ROWS))

    runs = result_of(spark, "history", path)
    assert [run["operation"] for run in runs] == ["OPTIMIZE", "OPTIMIZE", "RESTORE", "VACUUM"]
    assert [run["removed"] for run in runs] == [8, 0, len(new), 0]
    assert [run["partitions"] for run in runs] == [1, 0, 1, 0]
    assert all(run["seconds"] > 0 for run in runs)
    listed = invoke(spark, "history", path).stdout
    assert (
        f"replaced 8 files with {len(new)}" in listed and "deleted expired files, if any" in listed
    )


@pytest.mark.parametrize(("arguments", "holds"), PICTURES)
def test_pictures_and_reports(
    spark: SparkSession,
    places: dict[str, Any],
    tmp_path: Path,
    arguments: tuple[str, ...],
    holds: str,
) -> None:
    words = [word.format(**places, out=tmp_path / "new" / "picture") for word in arguments]
    told = result_of(spark, *words)
    (written,) = (tmp_path / "new").iterdir()
    assert told == {"output": str(written), "bytes": written.stat().st_size}
    assert str(written) == words[-1] and holds in written.read_text()


def test_advise(spark: SparkSession, places: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "workload.sql").write_text(
        ";\n".join(f"SELECT count(*) FROM cli_table WHERE a = {i * 83}" for i in range(12))
    )
    arguments = ("advise", "cli_table", "--queries", str(tmp_path / "workload.sql"))
    found = result_of(spark, *arguments, "--no-weigh", *SMALL)
    assert found["statement"] == "OPTIMIZE cli_table ZORDER BY (a)"
    assert found["recommended"] == ["a"] and found["readings"] == 12
    told = invoke(spark, *arguments, "--max-columns", "1", *SMALL)
    assert told.stdout.endswith("\nRun: OPTIMIZE cli_table ZORDER BY (a)\n")
    steps = [line.split(":")[0].removesuffix(" …") for line in told.stderr.splitlines()]
    assert "write trial files" in steps
    query = f"SELECT * FROM parquet.`{places['folder'].parent / 'plain'}` WHERE id = 7"
    piped = CliRunner().invoke(
        app, ["advise", "cli_table", "--queries", "-", "--json", *SMALL], obj=spark, input=query
    )
    assert json.loads(piped.stdout)["columns"][0]["column"] == "id", piped.output


def test_where_with_a_comment(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, 400, tmp_path / "flat")
    rows = spark.read.parquet(str(tmp_path / "flat"))
    rows.write.partitionBy("day").parquet(str(tmp_path / "t"))
    options = ("--where", "day = 3 -- the third", "--zorder-by", "a")
    found = result_of(spark, "optimize", str(tmp_path / "t"), *options)
    assert found["metrics"]["partitionsOptimized"] == 1
    assert found["metrics"]["clusteringColumns"] == ["a"]


def test_doctor_in_a_session(spark: SparkSession, places: dict[str, Any]) -> None:
    files = sorted(places["folder"].iterdir())
    checks = result_of(spark, "doctor", str(places["folder"]))
    assert [check["name"] for check in checks] == [
        "pyzorder", "spark", "java", "jar", "session", "versions", "catalog", "store", "layout"
    ]  # fmt: skip
    assert all(check["ok"] for check in checks)
    assert sorted(places["folder"].iterdir()) == files
    by_name = invoke(spark, "doctor", "cli_table")
    assert by_name.exit_code == 0 and "plain is writable" in by_name.stdout


def test_doctor_says_what_to_do(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = invoke(spark, "doctor", str(tmp_path / "none"))
    assert nowhere.exit_code == 1
    assert nowhere.stdout.splitlines()[-1].startswith(
        f"FIX  store    [ZORDER_PATH_NOT_FOUND] The path {tmp_path}/none does not exist. "
        "Check its spelling"
    )
    assert nowhere.stdout.count("FIX") == 1
    (tmp_path / "file").write_text("")
    unusable = invoke(spark, "doctor", str(tmp_path / "file"))
    assert "FIX  store    [ZORDER_PATH_IS_FILE]" in unusable.stdout
    with monkeypatch.context() as patched:
        patched.setattr(bridge, "creates_if_absent", Mock(side_effect=OSError("Read-only disk")))
        unusable = invoke(spark, "doctor", str(tmp_path))
    assert "FIX  store    [ZORDER_NOT_WRITABLE] No file can be created in " in unusable.stdout
    assert "Read-only disk" in unusable.stdout and "layout" not in unusable.stdout
    spark.sql("CREATE VIEW cli_view AS SELECT 1 AS one")
    view = invoke(spark, "doctor", "cli_view")
    spark.sql("DROP VIEW cli_view")
    assert view.exit_code == 1 and "[ZORDER_VIEW]" in view.stdout
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    without = invoke(spark, "doctor")
    assert without.exit_code == 1
    assert without.stdout.splitlines()[2].startswith("FIX  java     [ZORDER_JAVA_MISSING]")
    assert "session" not in without.stdout
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.7.0_80\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(pyzorder.ZOrderError, match="ZORDER_JAVA_TOO_OLD.*is Java 1.7.0_80"):
        sessions.java()
    if not spark.version.startswith("3.5"):
        old.write_text(
            "#!/bin/sh\n"
            "[ $1 = -version ] || exit 1\n"  # Java fails if a module is missing
            "echo 'openjdk version \"21.0.1\"' >&2\n"
        )
        with pytest.raises(pyzorder.ZOrderError, match="ZORDER_JAVA_INCOMPLETE.*incubator"):
            sessions.java()


@pytest.mark.parametrize(
    ("remote", "code", "says"),
    [
        ("sc://127.0.0.1:{port}", 3, "No Spark Connect server answers at 127.0.0.1"),
        ("127.0.0.1", 2, "write --remote sc://host:port"),
    ],
)
def test_no_server(remote: str, code: int, says: str) -> None:
    arguments = ["describe", "t", "--remote", remote.format(port=free_port())]
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    assert says in done.stderr


def test_no_place_for_the_log() -> None:
    settings = Settings(log=Path("/dev/null/x.log"))
    with (
        pytest.raises(click.BadParameter, match="--log /dev/null/x.log cannot be written"),
        sessions.log_file(settings),
    ):
        pass


@pytest.mark.parametrize(("number", "step", "expected"), STOPPED)
def test_stopped_by_a_signal(
    spark: SparkSession, tmp_path: Path, number: signal.Signals, step: str, expected: int
) -> None:
    """If a signal stops OPTIMIZE at any step, every row exists exactly once. If the OPTIMIZE is
    undone, it leaves no files behind."""
    rows, folder = 200_000, tmp_path / "t"
    write(spark, rows, folder)
    old = data_files(folder)
    size = sum(path.stat().st_size for path in old)
    target = ("--conf", f"spark.sql.zorder.optimize.targetFileSize={size // 30}")
    code, printed, before, after = stopped(
        number,
        step,
        tmp_path,
        "optimize",
        str(folder),
        "--zorder-by",
        "a,`b, c`",
        "--json",
        *target,
    )
    assert (code, printed) == (expected, ""), before + after
    assert "Stopping OPTIMIZE …" in after
    assert "Traceback" not in after and "WARN" not in before + after
    assert ids(folder) == list(range(rows))
    assert spark.read.parquet(str(folder)).count() == rows
    undone = "was undone, and no rows were lost." in after
    assert undone or "OPTIMIZE had already finished" in after
    assert (data_files(folder) == old) == undone
    if step == "lay out the new files …":
        assert undone
    assert not list(folder.rglob("*.staged")) and not list(folder.rglob("*.lease"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t"]
    if undone:
        found = result_of(spark, "optimize", str(folder), "--zorder-by", "a,`b, c`", *target)
        assert found["metrics"]["numFilesRemoved"] == FILES
        assert ids(folder) == list(range(rows))


def test_a_process_without_a_catalog(tmp_path: Path) -> None:
    """In a separate process, Spark's own output is suppressed, and an error is printed as a single
    line."""
    (tmp_path / "sales").mkdir()
    done = subprocess.run(
        command("describe", "sales", "--json"),
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=tmp_path,
        timeout=240,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.startswith(
        "Error: [ZORDER_TABLE_NOT_FOUND] The catalog has no table sales: "
    )
    assert "write ./sales" in done.stderr and "add --hive" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sales"]
