"""The roles of clients in the load test. Each client is a thread that works until the test ends."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable

from tests.bi.clients import Client
from tests.bi.tables import Ledger, LoadTable, Question, judge

#: A client reconnects after this many queries, as BI tools do.
QUESTIONS_A_CONNECTION = 40


class Role(threading.Thread):
    """A client. An error stops the client and counts as a wrong answer."""

    def __init__(
        self, connect: Callable[[], Client], tables: list[LoadTable], ledger: Ledger, seed: int
    ) -> None:
        super().__init__(daemon=True)
        self.connect, self.tables, self.ledger = connect, tables, ledger
        self.random = random.Random(seed)
        self.told = threading.Event()

    def run(self) -> None:
        try:
            while not self.told.is_set():
                client = self.connect()
                self.ledger.count("connections")
                try:
                    self.work(client)
                finally:
                    client.close()
        except Exception:
            self.ledger.failed(f"{type(self).__name__}: {traceback.format_exc()[-3000:]}")

    def work(self, client: Client) -> None:
        """Performs the work of this role over one connection."""
        raise NotImplementedError

    def pause(self, seconds: float) -> bool:
        """Waits for about `seconds` seconds. Returns False if the client should stop."""
        return not self.told.wait(seconds * self.random.uniform(0.5, 1.5))


class Writer(Role):
    """Appends batches to each of its tables in turn."""

    def work(self, client: Client) -> None:
        while self.pause(4.0):
            for table in self.tables:
                batch = len(table.begun)
                table.begun.append(time.monotonic())
                client.rows(table.insert(batch))
                table.ended.append(time.monotonic())
                self.ledger.count("appends")


class Optimizer(Role):
    """Runs OPTIMIZE and maintenance statements on each of its tables in turn."""

    def work(self, client: Client) -> None:
        client.rows("SET spark.sql.zorder.optimize.targetFileSize = 24k")
        while self.pause(15.0):
            for table in self.tables:
                ((_, metrics),) = client.rows(f"OPTIMIZE {table.name} ZORDER BY (a, b)")
                assert metrics is not None and "numFilesAdded" in metrics, metrics
                health = client.rows(f"DESCRIBE SKIPPING INDEX ON {table.name}")
                assert {"a", "b"} <= {row[0] for row in health}, health
                client.rows(f"VACUUM {table.name}")
                self.ledger.count("OPTIMIZE")


class Reader(Role):
    """Runs a dashboard's queries on all tables, and checks the answers."""

    def work(self, client: Client) -> None:
        for _ in range(QUESTIONS_A_CONNECTION):
            if not self.pause(0.1):
                return
            table = self.random.choice(self.tables)
            question = table.question(self.random)
            since = time.monotonic()
            seen = client.rows(question.sql)
            until = time.monotonic()
            wrong = judge(table, question, seen, since, until)
            if wrong is not None:
                wrong += self.repeated(client, table, question)
            self.ledger.queried(until - since, wrong)

    def repeated(self, client: Client, table: LoadTable, question: Question) -> str:
        """Repeats a query after a wrong answer, both on the same connection and on a new one.
        Returns a message that says whether the new answers are right."""
        new = self.connect()
        told = []
        for who, one in (("on the same connection", client), ("on a new one", new)):
            since = time.monotonic()
            again = judge(table, question, one.rows(question.sql), since)
            told.append(f"repeated {who}: {'right' if again is None else 'wrong'}")
        new.close()
        return f" ({', '.join(told)})"
