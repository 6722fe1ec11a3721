"""If tasks fail, run twice or lose their executor while OPTIMIZE writes, each row still exists
exactly once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.sql import SparkSession

from tests.support.disks import locked
from tests.support.processes import journal_driver
from tests.support.programs.cluster import cluster
from tests.support.tables import aim_at, data_files

DRIVER = Path(journal_driver.__file__)
FILES = 6
T = TypeVar("T")


class Child:
    """A process that runs a statement, and the lines that it has printed so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(self.process.stdout)

    def count(self, pattern: str) -> int:
        """The number of printed lines that match the pattern."""
        return sum(1 for line in list(self.said) if re.search(pattern, line))

    def wait_for(self, happened: Callable[[], T]) -> T:
        """Waits until `happened` returns a true value, and returns this value. Fails if the process
        ends first or if five minutes have passed."""
        deadline = time.monotonic() + 300
        while not (found := happened()):
            assert self.process.poll() is None, "".join(self.said)[-3000:]
            assert time.monotonic() < deadline, "".join(self.said)[-3000:]
            time.sleep(0.01)
        return found

    def succeeds(self) -> None:
        code = self.process.wait(timeout=300)
        self.reader.join(timeout=10)
        assert code == 0, "".join(self.said)[-3000:]


@contextmanager
def running(table: Path, statement: str, master: str, *settings: str) -> Iterator[Child]:
    """Runs the statement in a separate process, in a session with the given Spark master."""
    with subprocess.Popen(
        [sys.executable, str(DRIVER), str(table), "", statement, *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(DRIVER.parents[3]), "PYZORDER_TEST_MASTER": master},
    ) as process:
        try:
            yield Child(process)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def two_executors(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address and the workers of a cluster with two executors that have one core each."""
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def writers(workers: list[subprocess.Popen[bytes]], table: Path) -> dict[int, set[str]]:
    """The names of the new files that the workers' executors have open, keyed by the executors'
    process IDs."""
    found: dict[int, set[str]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if os.getpgid(int(folder.name)) not in {worker.pid for worker in workers}:
                continue
            if b"CoarseGrainedExecutorBackend" not in (folder / "cmdline").read_bytes():
                continue
            held = [os.readlink(link) for link in (folder / "fd").iterdir()]
        except OSError:
            continue
        staged = {name for name in held if name.endswith(".staged") and str(table) in name}
        if staged:
            found[int(folder.name)] = staged
    return found


def settled(spark: SparkSession, table: Path, expected: tuple[object, ...], files: int) -> None:
    """Asserts that the table has the expected rows and one file per leaf of the k-d tree. Also
    asserts that VACUUM removes leftover files."""
    rows = spark.read.parquet(str(table))
    assert summary(spark, table) == expected
    leaves = [re.match(r"part-(\d+)-", path.name) for path in data_files(table)]
    numbers = [int(leaf[1]) for leaf in leaves if leaf]
    assert sorted(numbers) == sorted(set(numbers)) and len(numbers) == len(leaves) == files
    spark.sql(f"VACUUM '{table}'").collect()
    assert not [p for p in table.rglob("*") if p.suffix in (".staged", ".lease")]
    assert not list(table.rglob("_zorder.*"))
    assert rows.count() == expected[0]


def summary(spark: SparkSession, table: Path) -> tuple[object, ...]:
    """Aggregates that change if any row is missing or duplicated."""
    rows = spark.read.parquet(str(table))
    (row,) = rows.selectExpr(
        "count(*)", "count(DISTINCT id)", "sum(id)", "sum(hash(text))"
    ).collect()
    return tuple(row)


def create(spark: SparkSession, table: Path, rows: int) -> tuple[object, ...]:
    """Writes the given number of rows, and sets a target size that makes OPTIMIZE write `FILES`
    files."""
    columns = ("id", "xxhash64(id) AS a", "concat('text-', hash(id), '-', id) AS text")
    frame = spark.range(0, rows, 1, 4).selectExpr(*columns)
    frame.write.option("compression", "gzip").parquet(str(table))  # makes writing slow
    aim_at(spark, table, FILES)
    return summary(spark, table)


def target_size(spark: SparkSession) -> str:
    key = "spark.sql.zorder.optimize.targetFileSize"
    return f"{key}={spark.conf.get(key)}"


def test_attempts_that_fail(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks that fail because the staging folder is read-only are retried until they succeed."""
    table = tmp_path / "t"
    expected = create(spark, table, 1000)
    staging = table / "_zorder" / "_staging"
    staging.mkdir(parents=True)
    statement = f"OPTIMIZE '{table}' ZORDER BY (a)"
    with running(table, statement, "local[2,100000]", target_size(spark)) as child:
        with locked(staging):
            child.wait_for(lambda: child.count(r"Exception in task \d+\.\d+ in stage") > 20)
        child.succeeds()
    settled(spark, table, expected, FILES)


@pytest.mark.crash
def test_an_executor_is_lost(
    spark: SparkSession, tmp_path: Path, two_executors: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    """If an executor dies while it writes a file, another executor runs its tasks, and the
    incomplete file is ignored."""
    master, workers = two_executors
    table = tmp_path / "t"
    expected = create(spark, table, 800_000)
    statement = f"OPTIMIZE '{table}' ZORDER BY (a)"
    with running(table, statement, master, target_size(spark)) as child:
        (lost, files), *_ = child.wait_for(lambda: writers(workers, table)).items()
        os.kill(lost, signal.SIGKILL)
        child.succeeds()
        assert child.count("Lost executor") > 0
    assert not {data_name(file) for file in files} & {path.name for path in data_files(table)}
    settled(spark, table, expected, FILES)


@pytest.mark.crash
def test_two_attempts_of_a_task(
    spark: SparkSession, tmp_path: Path, two_executors: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    """An executor is stopped while it writes a file, another executor runs the same task, and then
    the first executor resumes. Each row still exists exactly once."""
    master, workers = two_executors
    table = tmp_path / "t"
    expected = create(spark, table, 800_000)
    statement = f"OPTIMIZE '{table}' ZORDER BY (a)"
    speculation = {"speculation": "true", "speculation.interval": "50ms",
                   "speculation.quantile": "0.1", "speculation.multiplier": "1.01",
                   "speculation.minTaskRuntime": "10ms"}  # fmt: skip
    settings = [f"spark.{key}={value}" for key, value in speculation.items()]
    with running(table, statement, master, target_size(spark), *settings) as child:
        slow, *_ = child.wait_for(lambda: writers(workers, table))
        os.kill(slow, signal.SIGSTOP)
        (held,) = writers(workers, table)[slow]
        leaf = re.search(r"_part-(\d+)-", held)
        assert leaf is not None
        twice = f"_part-{leaf[1]}-*.staged"
        child.wait_for(lambda: len(list(table.rglob(twice))) > 1)
        os.kill(slow, signal.SIGCONT)
        child.succeeds()
    settled(spark, table, expected, FILES)


def data_name(staged: str) -> str:
    """The name that a staged file would have in the table."""
    return Path(staged).name.removeprefix("_").removesuffix(".staged")
