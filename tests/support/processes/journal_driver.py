"""Calls a Writer and readers of the journal from Python, without SQL statements.

`python journal_driver.py TABLE FAIL_POINT [STATEMENTS [KEY=VALUE …]]` rewrites the table or runs
the statements, and kills itself at the fail point. Statements are separated by `; `. The remaining
arguments are settings. The functions `killed` and `paused` run this program. With `paused`, the
program stops at fail points instead of killing itself.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.support import sessions
from tests.support.folders import Folder
from tests.support.processes import kill_matrix


class Publish:
    """Makes the JVM classes for publishing available as attributes."""

    READING = (
        "JournaledListing", "SelectedPartitions", "ZOrderParquetFileFormat", "ZOrderOrcFileFormat"
    )  # fmt: skip
    STORAGE = ("CreateIfAbsent$", "FileRef", "TableFolder")

    def __init__(self, spark: SparkSession) -> None:
        self._root = spark._jvm.io.pyzorder

    def __getattr__(self, name: str) -> Any:
        if name in self.STORAGE:
            return getattr(self._root.storage, name)
        return getattr(
            self._root.publish.reading if name in self.READING else self._root.publish, name
        )


def package(spark: SparkSession) -> Any:
    """The JVM classes for publishing in this session."""
    return Publish(spark)


def scala_seq(spark: SparkSession, items: Iterable[Any]) -> Any:
    """A Scala Seq of JVM objects."""
    array = spark._jvm.java.util.ArrayList()
    for item in items:
        array.add(item)
    buffer = getattr(spark._jvm.scala.collection, "JavaConverters").asScalaBufferConverter(array)
    return buffer.asScala().toList()


def hadoop_path(spark: SparkSession, path: str | Path) -> Any:
    return spark._jvm.org.apache.hadoop.fs.Path(f"file:{path}")


def none(spark: SparkSession) -> Any:
    return getattr(getattr(spark._jvm.scala, "None$"), "MODULE$")


def read(spark: SparkSession, table: Path | str, fmt: str = "parquet") -> DataFrame:
    """Reads the table through the journal, as queries with the skipping rule do."""
    return through_journal(spark, spark.read.format(fmt).load(str(table)), fmt)


def through_journal(spark: SparkSession, df: DataFrame, fmt: str = "parquet") -> DataFrame:
    """A DataFrame like `df`, but Spark lists its files through the journal."""
    session = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    relation = df._jdf.queryExecution().analyzed().relation()
    listing, roots = package(spark).JournaledListing, relation.location().rootPaths()
    tables = listing.tablesOf(conf, roots, none(spark))
    folders = scala_seq(spark, [tables.apply(i).folder() for i in range(tables.length())])
    publish = package(spark)
    selected = publish.SelectedPartitions.all(relation.partitionSchema())
    location = listing.anew(
        session, relation.location(), relation.options(), selected, folders, scala_seq(spark, [])
    )
    formats = {"parquet": publish.ZOrderParquetFileFormat, "orc": publish.ZOrderOrcFileFormat}
    form = formats[fmt](roots)
    ours = spark._jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation(
        location,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        form,
        relation.options(),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(ours), spark)


class Rewrite:
    """A run of a Writer that replaces all data files in each folder with one file.

    The table is given as a local path, or as the URL of a folder on any store.
    """

    def __init__(self, spark: SparkSession, table: Path | str, fmt: str = "parquet") -> None:
        self.spark, self.fmt = spark, fmt
        self.folder = Folder(spark, f"file:{table}" if isinstance(table, Path) else table)
        self.writer = package(spark).Writer.begin(spark._jsparkSession, self.folder.path(), "TEST")
        files = self.folder.everything()
        self.inputs = {name: files[name] for name in self.folder.data()}
        parents = sorted({name.rpartition("/")[0] for name in self.inputs})
        self.staged = [self._stage(parent) for parent in parents]

    def _stage(self, parent: str) -> Any:
        spark, url = self.spark, self.folder.url
        name = f"{parent}/new-{uuid.uuid4()}.{self.fmt}".lstrip("/")
        inputs = [f"{url}/{one}" for one in self.inputs if one.rpartition("/")[0] == parent]
        rows = spark.read.format(self.fmt).load(inputs)
        temporary = Folder(spark, f"{url}-{uuid.uuid4()}")
        rows.coalesce(1).write.format(self.fmt).save(temporary.url)
        [written] = temporary.data()
        size, _ = temporary.everything()[written]
        target = self.writer.stagedPath(name)
        temporary.move(written, target)
        temporary.delete()
        return package(spark).StagedFile(target, name, size, rows.count())

    def publish(self) -> None:
        spark = self.spark
        file_ref = package(spark).FileRef
        retire = [file_ref(name, size, time) for name, (size, time) in self.inputs.items()]
        identity = getattr(spark._jvm.scala.Predef, "$conforms")()
        entries, rows_of = scala_seq(spark, []), scala_seq(spark, [])
        self.writer.publish(
            scala_seq(spark, retire), scala_seq(spark, self.staged), entries, identity, rows_of
        )


def _child(table: Path | str, point: str, *statement: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, str(table), point, *statement],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


def killed(table: Path | str, point: str, *statement: str) -> None:
    """Starts a process that rewrites the table or runs the statement, and that kills itself at a
    fail point."""
    child = _child(table, point, *statement)
    _, said = child.communicate(timeout=600)
    assert f"killed at {point}" in said, f"{point} was not reached: {said[-3000:]}"
    kill_matrix.killed_at(point)


def ran(table: Path | str, statements: str) -> None:
    """Runs statements in a new process."""
    child = _child(table, "", statements)
    _, said = child.communicate(timeout=600)
    assert child.returncode == 0, said[-3000:]


class Paused:
    """A stopped process. After the process has ended, `said` is its output, and `succeeded` is True
    if it succeeded."""

    said = ""
    succeeded = False

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._stopped = self._wait()

    def go_on(self) -> None:
        """Resumes the process until it stops again."""
        os.kill(self._stopped, signal.SIGCONT)
        time.sleep(0.2)
        self._stopped = self._wait()

    def end(self) -> None:
        """Resumes the process and waits until it ends."""
        os.kill(self._stopped, signal.SIGCONT)
        _, self.said = self._process.communicate(timeout=600)
        self.succeeded = self._process.returncode == 0

    def _wait(self) -> int:
        """Waits until the JVM of the process is stopped, and returns the JVM's process id."""
        while self._process.poll() is None:
            listed = subprocess.run(
                ["ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True
            )
            for pid, parent, state in map(str.split, listed.stdout.splitlines()):
                if int(parent) == self._process.pid and state.startswith("T"):
                    return int(pid)
            time.sleep(0.2)
        raise AssertionError(f"was not paused: {self._process.communicate()[1][-3000:]}")


@contextmanager
def paused(table: Path | str, points: str, statement: str, *settings: str) -> Iterator[Paused]:
    """Runs the statement in a process that stops at the fail points. After the block, resumes the
    process and waits until it ends."""
    process = Paused(
        _child(table, "", statement, f"spark.sql.zorder.test.pauseAt={points}", *settings)
    )
    try:
        yield process
    finally:
        process.end()


def main(table: Path, point: str, statement: str | None = None, *settings: str) -> None:
    spark = sessions.session(
        memory="600m",
        spark__sql__zorder__test__killAt=point,
        spark__sql__zorder__vacuum__retentionCheck="false",
        **dict(setting.split("=", 1) for setting in settings),
    )
    if statement is None:
        Rewrite(spark, table).publish()
    else:
        for one in statement.split("; "):
            spark.sql(one).collect()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
