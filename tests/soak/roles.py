"""The processes of the soak: `python -m tests.soak.roles catalog|optimizer|reader HOME SEED`.

`calm` has only appends, by two processes, and is known by its path alone. `storm` is a table of the
catalog that suffers all that SQL does to partitions and tables. `moved` is renamed, altered and
dropped. Spark's own writers of one table take turns, because they share its folder `_temporary`, and
the first to end takes it away from the others; our statements run beside them.
"""

from __future__ import annotations

import fcntl
import itertools
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from pyzorder.table import quoted
from tests.soak.ledger import ROWS, SCHEMA, Book, batch_sql
from tests.soak.sessions import FAILURES, Worker, failure, session, told

#: What a process returns whose Spark was killed.
KILLED = 137

#: Where a process may kill itself in the midst of a statement.
POINTS = ("after-markers", "after-index", "after-retire", "mid-retire", "before-commit",
          "after-commit", "mid-move-in", "before-done", "after-done", "recovery-decided",
          "recovery-undoing", "recovery-completing", "recovery-moved", "mid-vacuum")  # fmt: skip


class Writer(Worker):
    """Writes batches and notes them; keeps in mind which there are."""

    numbers = itertools.count(1)  # of all threads of the process
    first = 0  # no other process uses numbers from here to 999 999 further

    def step(self) -> int:
        return self.first + next(Writer.numbers)

    def add(self, table: str, p: int, write: Callable[[int], None]) -> int:
        """One batch; None of it is certain when the statement fails."""
        op = self.step()
        self.book.note("adding", table=table, op=op, p=p, step=op)
        if self.attempt(lambda: write(op), f"write into {table}"):
            self.book.note("added", table=table, op=op, p=p, step=op)
        return op

    def remove(self, table: str, ops: Sequence[int], what: str, act: Callable[[], None]) -> bool:
        """A statement that takes these batches away, and nothing else."""
        step = self.step()
        self.book.note("removing", table=table, ops=list(ops), step=step)
        done = self.attempt(act, what)
        self.book.note("removed" if done else "spared", table=table, ops=list(ops), step=step)
        return done

    @contextmanager
    def moving(self, table: str) -> Iterator[None]:
        """A time in which the table as a whole is on its way."""
        step = self.step()
        self.book.note("moving", table=table, step=step)
        yield
        self.book.note("moved", table=table, step=step)

    def attempt(self, act: Callable[[], None], what: str) -> bool:
        """Others' statements must work whatever we do: one that fails is a finding."""
        try:
            act()
            outcome = "done"
        except FAILURES as error:
            outcome = told(error)
        self.book.note("ran", verb=what, outcome=outcome, typed=outcome == "done")
        return outcome == "done"

    def sql(self, text: str) -> None:
        self.spark.sql(text).collect()

    def append_to_calm(self) -> None:
        p = self.random.randrange(4)

        def write(op: int) -> None:
            rows = self.spark.range(0, ROWS, 1, 1).selectExpr(*batch_sql(op, p))
            rows.write.mode("append").partitionBy("p").parquet(str(self.path("calm")))

        with (self.home / "calm.turn").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            self.add("calm", p, write)


class Storm:
    """The batches of `storm` by partition, and whose turn it is to write."""

    def __init__(self, parts: int) -> None:
        self.ops: dict[int, list[int]] = {p: [] for p in range(parts)}
        self.turn = threading.Lock()


class PartitionWriter(Writer):
    """Appends to its partitions of `storm`, overwrites and drops them."""

    def __init__(self, *arguments: object, shared: Storm, parts: Sequence[int]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.shared, self.parts = shared, parts

    def run(self) -> None:
        while self.goes_on():
            with self.shared.turn:
                p = self.random.choice(self.parts)
                self.random.choice(
                    [self.append, self.append, self.append, self.overwrite, self.dynamic, self.drop]
                )(p)

    def rows(self, op: int) -> str:
        return f"SELECT {', '.join(batch_sql(op, None))} FROM range(0, {ROWS}, 1, 1)"

    def append(self, p: int) -> None:
        text = f"INSERT INTO storm PARTITION (p = {p}) "
        self.shared.ops[p].append(self.add("storm", p, lambda op: self.sql(text + self.rows(op))))

    def overwrite(self, p: int) -> None:
        text = f"INSERT OVERWRITE storm PARTITION (p = {p}) "
        self.replace([p], f"{text[:16]} PARTITION", lambda ops: self.sql(text + self.rows(ops[0])))

    def dynamic(self, p: int) -> None:
        """All of the writer's partitions at once, by the values in the rows."""

        def act(ops: Sequence[int]) -> None:
            rows = " UNION ALL ".join(
                f"SELECT *, {p} FROM ({self.rows(op)})"
                for op, p in zip(ops, self.parts, strict=True)
            )
            hint = "/*+ COALESCE(1) */"
            self.sql(f"INSERT OVERWRITE storm SELECT {hint} * FROM ({rows})")

        self.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            self.replace(self.parts, "INSERT OVERWRITE dynamic", act)
        finally:
            self.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    def replace(
        self, parts: Sequence[int], what: str, act: Callable[[Sequence[int]], None]
    ) -> None:
        old = [op for p in parts for op in self.shared.ops[p]]
        new = [self.step() for _ in parts]
        for op, p in zip(new, parts, strict=True):
            self.book.note("adding", table="storm", op=op, p=p, step=op)
        if self.remove("storm", old, what, lambda: act(new)):
            for op, p in zip(new, parts, strict=True):
                self.book.note("added", table="storm", op=op, p=p, step=op)
                self.shared.ops[p] = [op]
        else:
            for op, p in zip(new, parts, strict=True):
                self.shared.ops[p].append(op)

    def drop(self, p: int) -> None:
        text = f"ALTER TABLE storm DROP IF EXISTS PARTITION (p = {p})"
        if self.remove("storm", self.shared.ops[p], "ALTER TABLE DROP PARTITION",
                       lambda: self.sql(text)):  # fmt: skip
            self.shared.ops[p] = []


class WholeWriter(PartitionWriter):
    """What concerns the whole of `storm`."""

    def run(self) -> None:
        while self.goes_on():
            time.sleep(5 * self.pause)
            with self.shared.turn:
                self.random.choice([self.truncate, self.overwrite_all])()

    def truncate(self) -> None:
        everything = [op for ops in self.shared.ops.values() for op in ops]
        if self.remove("storm", everything, "TRUNCATE TABLE",
                       lambda: self.sql("TRUNCATE TABLE storm")):  # fmt: skip
            for p in self.shared.ops:
                self.shared.ops[p] = []

    def overwrite_all(self) -> None:
        parts, self.parts = self.parts, sorted(self.shared.ops)

        def act(ops: Sequence[int]) -> None:
            rows = " UNION ALL ".join(
                f"SELECT *, {p} FROM ({self.rows(op)})"
                for op, p in zip(ops, self.parts, strict=True)
            )
            self.sql(f"INSERT OVERWRITE storm SELECT /*+ COALESCE(1) */ * FROM ({rows})")

        self.replace(self.parts, "INSERT OVERWRITE whole", act)
        self.parts = parts


class MovedWriter(Writer):
    """`moved`: appended to, renamed, given columns and another place, dropped and made anew."""

    ops: list[int]
    columns = 0

    def run(self) -> None:
        while self.goes_on():
            self.random.choice(
                [self.append] * 6
                + [self.rename, self.rename, self.add_column, self.set_location, self.drop]
            )()

    def create(self) -> None:
        self.ops, self.columns = [], 0
        self.attempt(
            lambda: self.placed(f"CREATE TABLE moved ({SCHEMA}) USING parquet"), "CREATE TABLE"
        )

    def placed(self, text: str) -> None:
        """Where a folder is in the way, it goes soon: a disk does not delete one as a whole, and who
        writes into it notices a moment later."""
        until = time.monotonic() + 5
        while True:
            try:
                return self.sql(text)
            except FAILURES as error:
                if "LOCATION_ALREADY_EXISTS" not in str(error) or time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def append(self) -> None:
        def write(op: int) -> None:
            more = "".join(f", id AS more{i}" for i in range(self.columns))
            rows = f"SELECT {', '.join(batch_sql(op, 0))}{more} FROM range(0, {ROWS}, 1, 1)"
            self.sql(f"INSERT INTO moved {rows}")

        self.ops.append(self.add("moved", 0, write))

    def rename(self) -> None:
        with self.moving("moved"):
            for one, other in (("moved", "moved_away"), ("moved_away", "moved")):
                text = f"ALTER TABLE {one} RENAME TO {other}"
                self.attempt(lambda text=text: self.placed(text), "ALTER RENAME")  # type: ignore[misc]
                time.sleep(self.pause)

    def add_column(self) -> None:
        text = f"ALTER TABLE moved ADD COLUMNS (more{self.columns} BIGINT)"
        if self.attempt(lambda: self.sql(text), "ALTER ADD COLUMNS"):
            self.columns += 1

    def set_location(self) -> None:
        """To a copy of the rows; the old place goes away, or Spark would rename folders into it."""
        step = str(self.step())
        place = self.home / "places" / step
        with self.moving("moved"):
            if self.attempt(lambda: self.spark.table("moved").write.parquet(str(place)), "copy"):
                text = f"ALTER TABLE moved SET LOCATION {quoted(str(place))}"
                self.attempt(lambda: self.sql(text), "ALTER SET LOCATION")
                if self.path("moved").exists():
                    self.path("moved").rename(self.home / "places" / f"old-{step}")

    def drop(self) -> None:
        def act() -> None:
            self.sql("DROP TABLE moved")

        with self.moving("moved"):
            if self.remove("moved", self.ops, "DROP TABLE", act):
                self.create()


class ByName(Worker):
    """OPTIMIZE, and queries, in the application that has the catalog."""

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

            self.asked(table, "by name", make)  # type: ignore[arg-type]


class ByPath(Worker):
    """OPTIMIZE, VACUUM and RESTORE of folders, killed in the midst of them now and then."""

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
        """Of `calm` only what no query can need; of others all, which troubles queries."""
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
    """Queries by path, of frames made and scans planned at any time before; appends to `calm`."""

    def run(self) -> None:
        while self.goes_on():
            self.random.choice([self.fresh] * 4 + [self.planned, self.old, self.append_to_calm])()

    def table(self) -> str:
        return self.random.choice(["calm", "calm", "storm"])

    def fresh(self) -> None:
        table = self.table()
        self.asked(table, "by path", lambda: self.frame(table))

    def old(self) -> None:
        """A frame that is asked again and again while the table changes."""
        table = self.table()
        since = time.monotonic()
        try:
            frame = self.frame(table)
            frame.inputFiles()
        except FAILURES:
            return
        for _ in range(3):
            time.sleep(4 * self.pause * self.random.random())
            self.asked(table, "an old frame", lambda: frame, since)

    def planned(self) -> None:
        """A scan whose files are chosen now and read later."""
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
        self.book.note("asked", table=table, kind="planned before", since=since, until=until,
                       ended=time.monotonic(), **question, **seen)  # fmt: skip


def catalog(spark: SparkSession, home: Path, book: Book, seed: int) -> None:
    """The process with the catalog: a thread and a session for each of its workers."""
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
            sys.exit(KILLED)  # Spark is dead
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
