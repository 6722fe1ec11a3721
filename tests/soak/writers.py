"""The soak test's writers. Each writer is a thread that records what it writes.

Spark's own writes to a table run one at a time, because they share the folder `_temporary`, and the
first write to finish deletes this folder. pyzorder's statements run concurrently with these writes.
"""

from __future__ import annotations

import fcntl
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyzorder.table import quoted
from tests.soak.ledger import ROWS, SCHEMA, batch_sql
from tests.soak.sessions import FAILURES, Worker, error_text


class Writer(Worker):
    """Writes batches, records them, and remembers which batches exist."""

    numbers = itertools.count(1)  # shared by all threads in the process
    first = 0  # the process uses the numbers from first to first + 999,999

    def step(self) -> int:
        return self.first + next(Writer.numbers)

    def add(self, table: str, p: int, write: Callable[[int], None]) -> int:
        """Adds one batch. If the statement fails, some of the batch's rows may exist."""
        op = self.step()
        self.book.note("adding", table=table, op=op, p=p, step=op)
        if self.attempt(lambda: write(op), f"write into {table}"):
            self.book.note("added", table=table, op=op, p=p, step=op)
        return op

    def remove(self, table: str, ops: Sequence[int], what: str, act: Callable[[], None]) -> bool:
        """Runs a statement that removes exactly the given batches."""
        step = self.step()
        self.book.note("removing", table=table, ops=list(ops), step=step)
        done = self.attempt(act, what)
        self.book.note("removed" if done else "spared", table=table, ops=list(ops), step=step)
        return done

    @contextmanager
    def moving(self, table: str) -> Iterator[None]:
        """Records that the whole table is being moved while the block runs."""
        step = self.step()
        self.book.note("moving", table=table, step=step)
        yield
        self.book.note("moved", table=table, step=step)

    def attempt(self, act: Callable[[], None], what: str) -> bool:
        """Runs a plain Spark statement. pyzorder must not make it fail, so a failure is recorded as
        an error."""
        try:
            act()
            outcome = "done"
        except FAILURES as error:
            outcome = error_text(error)
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
    """The batches in `storm` by partition, and the lock that its writers share."""

    def __init__(self, parts: int) -> None:
        self.ops: dict[int, list[int]] = {p: [] for p in range(parts)}
        self.turn = threading.Lock()


class PartitionWriter(Writer):
    """Appends to, overwrites and drops its partitions of `storm`."""

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
        """Overwrites all partitions of this writer with a dynamic partition overwrite."""

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
        if self.remove(
            "storm", self.shared.ops[p], "ALTER TABLE DROP PARTITION", lambda: self.sql(text)
        ):
            self.shared.ops[p] = []


class WholeWriter(PartitionWriter):
    """Runs statements that affect all of `storm`."""

    def run(self) -> None:
        while self.goes_on():
            time.sleep(5 * self.pause)
            with self.shared.turn:
                self.random.choice([self.truncate, self.overwrite_all])()

    def truncate(self) -> None:
        everything = [op for ops in self.shared.ops.values() for op in ops]
        if self.remove(
            "storm", everything, "TRUNCATE TABLE", lambda: self.sql("TRUNCATE TABLE storm")
        ):
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
    """Appends to `moved`, renames it, adds columns to it, moves it, and drops and recreates it."""

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
        """Retries a statement while a deleted folder still exists. Deleting a folder takes several
        steps, and a writer may recreate the folder between these steps. That writer may need up to
        ten seconds to notice the deletion and remove the folder."""
        until = time.monotonic() + 15
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
        """Moves the table to a copy of its rows. Also moves the old folder away, because Spark
        would otherwise rename other folders into it."""
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
