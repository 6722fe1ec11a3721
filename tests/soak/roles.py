"""The processes of the soak test: `python -m tests.soak.roles catalog|optimizer|reader HOME SEED`.

Two processes append to the table `calm`. Apart from these appends, the rows of `calm` do not
change. `calm` is accessed only by its path. `storm` is a catalog table on which the test runs every
kind of SQL statement for partitions and tables. `moved` is renamed, altered and dropped. The
classes of the writers are in writers.py.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pyzorder.table import quoted
from tests.soak.ledger import SCHEMA, Book
from tests.soak.sessions import FAILURES, Worker, failure, session
from tests.soak.writers import MovedWriter, PartitionWriter, Storm, WholeWriter, Writer

#: The exit code of a process whose JVM was killed.
KILLED = 137

#: Fail points at which a process may kill itself while it runs a statement.
POINTS = ("after-markers", "after-index", "after-retire", "mid-retire", "before-commit",
          "after-commit", "mid-move-in", "moved-in", "before-done", "after-done",
          "recovery-decided", "recovery-undoing", "recovery-completing", "recovery-moved",
          "mid-vacuum")  # fmt: skip


class ByName(Worker):
    """Runs OPTIMIZE and queries, and refers to the tables by name. Runs in the process that has the
    catalog."""

    def optimize(self) -> None:
        while self.goes_on():
            table = self.random.choice(["storm", "moved", "moved_away"])
            full = self.random.choice(["", " FULL"])
            self.statement(f"OPTIMIZE {table}{full} ZORDER BY (a)")

    def query(self) -> None:
        while self.goes_on():
            table = self.random.choice(["storm", "moved"])

            def make(table: str = table) -> object:
                self.spark.catalog.refreshTable(table)
                return self.spark.table(table)

            self.observe(table, "by name", make)  # type: ignore[arg-type]


class ByPath(Worker):
    """Runs OPTIMIZE, VACUUM and RESTORE on folders, and is sometimes killed while a statement
    runs."""

    def run(self) -> None:
        while self.goes_on():
            if self.random.random() < 0.1:
                point = self.random.choice(POINTS)
                self.spark.conf.set("spark.sql.zorder.test.killAt", point)
            table = self.random.choice(["calm", "calm", "storm", "moved"])
            place = quoted(str(self.path(table)))
            self.random.choice([self.optimize] * 6 + [self.vacuum, self.restore])(table, place)

    def optimize(self, table: str, place: str) -> None:
        full = self.random.choice(["", "", " FULL"])
        where = self.random.choice(["", f" WHERE p = {self.random.randrange(4)}"])
        self.statement(f"OPTIMIZE {place}{full}{where if table == 'calm' else ''} ZORDER BY (a)")

    def vacuum(self, table: str, place: str) -> None:
        """Runs VACUUM. On `calm`, VACUUM keeps the replaced files that a query may still need. On
        the other tables, it deletes all replaced files, so queries may fail."""
        if table == "calm":
            self.statement(f"VACUUM {place}")
        else:
            step = int(time.monotonic() * 1e6)
            self.book.note("removing", table=table, step=step)
            self.statement(f"VACUUM {place} RETAIN 0 HOURS")
            self.book.note("removed", table=table, step=step)

    def restore(self, table: str, place: str) -> None:
        self.statement(f"RESTORE {place} TO BEFORE OPTIMIZE")


class Reader(Writer):
    """Queries tables by path and appends to `calm`. Uses new DataFrames, old DataFrames and scans
    that were planned earlier."""

    def run(self) -> None:
        while self.goes_on():
            self.random.choice([self.fresh] * 4 + [self.planned, self.old, self.append_to_calm])()

    def table(self) -> str:
        return self.random.choice(["calm", "calm", "storm"])

    def fresh(self) -> None:
        table = self.table()
        self.observe(table, "by path", lambda: self.frame(table))

    def old(self) -> None:
        """Runs several queries on the same DataFrame while the table changes."""
        table = self.table()
        since = time.monotonic()
        try:
            frame = self.frame(table)
            frame.inputFiles()
        except FAILURES:
            return
        for _ in range(3):
            time.sleep(4 * self.pause * self.random.random())
            self.observe(table, "an old frame", lambda: frame, since)

    def planned(self) -> None:
        """Plans a scan, which selects its files, and reads these files later."""
        table, question = self.table(), {"low": 0, "high": 1000, "p": None}
        since = time.monotonic()
        seen: dict[str, object]
        try:
            rows = self.frame(table).select("op", "id").rdd
            rows.getNumPartitions()
            until = time.monotonic()
            time.sleep(8 * self.pause * self.random.random())
            ids: dict[int, list[int]] = {}
            for row in rows.collect():
                ids.setdefault(row["op"], []).append(row["id"])
            seen = {"seen": {op: (len(found), len(set(found))) for op, found in ids.items()}}
        except FAILURES as error:
            until, seen = time.monotonic(), failure(error)
        self.book.note("query", table=table, kind="planned before", since=since, until=until,
                       ended=time.monotonic(), **question, **seen)  # fmt: skip


def catalog(spark: SparkSession, home: Path, book: Book, seed: int) -> None:
    """Runs the process that has the catalog, with one thread and one session per worker."""
    spark.sql(f"CREATE TABLE storm ({SCHEMA}) USING parquet PARTITIONED BY (p)")
    shared = Storm(4)

    def of(kind: type[Worker], number: int, **more: object) -> Worker:
        return kind(spark.newSession(), home, book, seed * 100 + number, **more)  # type: ignore[arg-type]

    appender = of(Writer, 1)
    assert isinstance(appender, Writer)
    appender.append_to_calm()

    def append() -> None:
        while appender.goes_on():
            appender.append_to_calm()

    named, asking, mover = of(ByName, 2), of(ByName, 3), of(MovedWriter, 7)
    mover.create()  # type: ignore[attr-defined]
    work = [
        append,
        named.optimize,  # type: ignore[attr-defined]
        asking.query,  # type: ignore[attr-defined]
        of(PartitionWriter, 4, shared=shared, parts=(0, 1)).run,  # type: ignore[attr-defined]
        of(PartitionWriter, 5, shared=shared, parts=(2, 3)).run,  # type: ignore[attr-defined]
        of(WholeWriter, 6, shared=shared, parts=()).run,  # type: ignore[attr-defined]
        mover.run,  # type: ignore[attr-defined]
    ]
    (home / "ready").touch()
    failed: list[str] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException:
            failed.append(traceback.format_exc())
            (home / "stop").touch()

    threads = [threading.Thread(target=guarded, args=(job,)) for job in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        sys.exit("\n".join(failed))


def main(role: str, home: Path, seed: int) -> None:
    book = Book(home / "ledger", role)
    Writer.first = {"catalog": 0, "optimizer": 1, "reader": 2}[role] * 1_000_000
    spark = session(home, 2 if role == "catalog" else 1)
    if role == "catalog":
        catalog(spark, home, book, seed)
    else:
        while not (home / "ready").exists():
            time.sleep(0.1)
        kind = {"optimizer": ByPath, "reader": Reader}[role]
        try:
            kind(spark, home, book, seed).run()
        except (Py4JError, OSError) as error:
            if isinstance(error, FAILURES):
                raise
            sys.exit(KILLED)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
