"""Runs many clients against one Thrift server, while other clients append to its tables and
optimize them.

    python -m tests.bi --minutes 10

The answer to a query is right if it contains all rows that were committed before the query began,
and no rows that were written after the query ended. Prints statistics at regular intervals. Exits
with code 1 if an answer was wrong, a statement failed, or the server's heap grew too much.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bi.clients import Client, Jdbc, PyHive, SqlAlchemy, compile_jdbc_client
from tests.bi.memory import Memory, measure, options
from tests.bi.roles import Optimizer, Reader, Role, Writer
from tests.bi.tables import FIRST, Ledger, load_tables
from tests.support.processes.servers import free_port, spark_server

SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"

#: The maximum heap size at the end of the test, relative to the size after the first minute. The
#: heap is measured after full garbage collections. It grows a little because the server caches data
#: and keeps records of statements and sessions.
GROWTH = 1.25

HEAD = "minute  queries     per s   median ms   95 % ms  appends  OPTIMIZE  heap MiB  RSS MiB"


def row(
    minute: float, since: float, ledger: Ledger, memory: Memory, previous: dict[str, int]
) -> str:
    """A line of statistics: the work done since the previous line, and the current memory usage."""
    taken = sorted(ledger.taken()) or [0.0]
    counts = {key: n - previous.get(key, 0) for key, n in ledger.counts.items()}
    queries = counts.get("queries", 0)
    return (
        f"{minute:6.1f} {queries:8} {queries / since:9.1f} {1e3 * statistics.median(taken):11.0f}"
        f" {1e3 * taken[int(0.95 * len(taken))]:9.0f} {counts.get('appends', 0):8}"
        f" {counts.get('OPTIMIZE', 0):9} {memory.heap:9} {memory.resident:8}"
    )


def prepare(client: Client) -> None:
    """Creates the tables with their first batches, and optimizes them to create their indexes."""
    client.rows("SET spark.sql.zorder.optimize.targetFileSize = 24k")
    for table in TABLES:
        client.rows(table.create)
        for batch in range(FIRST):
            table.begun.append(time.monotonic())
            client.rows(table.insert(batch))
            table.ended.append(time.monotonic())
        client.rows(f"OPTIMIZE {table.name} ZORDER BY (a, b)")


TABLES = load_tables()


def load(folder: Path, minutes: float, clients: int, every: float) -> int:
    """Starts the server, runs the clients, and measures the memory at intervals of `every`
    seconds."""
    port, log = free_port(), folder / "gc.log"
    arguments = ["--hiveconf", f"hive.server2.thrift.port={port}",
                 "--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]  # fmt: skip
    classes = compile_jdbc_client(folder)
    settings = {
        "spark.driver.extraJavaOptions": options(log),
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    kinds: list[Callable[[], Client]] = [
        lambda: PyHive(port),
        lambda: PyHive(port),
        lambda: SqlAlchemy(port),
        lambda: Jdbc(port, classes),
    ]
    ledger = Ledger()
    with spark_server(folder, port, SERVER, settings, *arguments) as server:
        watcher = PyHive(port)
        prepare(watcher)
        roles: list[Role] = [
            Writer(kinds[0], TABLES[:2], ledger, 1),
            Writer(kinds[3], TABLES[2:], ledger, 2),
            Optimizer(kinds[0], TABLES[::2], ledger, 3),
            Optimizer(kinds[3], TABLES[1::2], ledger, 4),
        ]
        roles += [Reader(kinds[i % 4], TABLES, ledger, 10 + i) for i in range(clients - len(roles))]
        begun = looked = time.monotonic()
        memories = [measure(watcher, log, server.pid)]
        print(f"{clients} clients, {minutes:g} minutes\n{HEAD}")
        print(row(0, 1, ledger, memories[0], {}), flush=True)
        for role in roles:
            role.start()
        for look in itertools.count(1):
            counts = dict(ledger.counts)
            end = min(begun + every * look, begun + 60 * minutes)
            while time.monotonic() < end and not ledger.wrong:
                time.sleep(0.2)
            memories.append(measure(watcher, log, server.pid))
            now = time.monotonic()
            print(row((now - begun) / 60, now - looked, ledger, memories[-1], counts), flush=True)
            looked = now
            if ledger.wrong or now >= begun + 60 * minutes:
                break
        for role in roles:
            role.told.set()
        for role in roles:
            role.join(timeout=120)
            if role.is_alive():
                ledger.failed(f"{type(role).__name__} did not end")
        memories.append(measure(watcher, log, server.pid))
        watcher.close()
    return verdict(ledger, memories)


def verdict(ledger: Ledger, memories: list[Memory]) -> int:
    """Prints the totals. Returns 1 if the test failed."""
    settled, last = memories[1], memories[-1]
    print(", ".join(f"{n} {what}" for what, n in sorted(ledger.counts.items())))
    print(f"heap after a full GC: {settled.heap} MiB after the first minute, {last.heap} MiB "
          f"at the end; resident: {settled.resident} and {last.resident} MiB")  # fmt: skip
    for wrong in ledger.wrong[:10]:
        print(f"WRONG: {wrong}")
    grows = last.heap > GROWTH * settled.heap
    if grows:
        print(f"WRONG: the heap grew by more than {GROWTH - 1:.0%}")
    if not ledger.wrong and not grows:
        print("Every answer was right, and the server's heap stayed within its limit.")
    return 1 if ledger.wrong or grows else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bi", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--every", type=float, default=60, help="seconds between lines of output")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="zorder-bi-") as folder:
        return load(Path(folder), arguments.minutes, arguments.clients, arguments.every)


if __name__ == "__main__":
    sys.exit(main())
