"""Runs OPTIMIZE while other processes change the same tables: `make soak MINUTES=30`.

Several processes write to, alter, query and optimize the tables. Some of these processes are
killed. Each process records every statement before and after running it (see ledger.py). The
records determine which rows a query must return and which rows it may return. No row may occur
twice. The run stops at the first wrong answer, or at the first error that does not report a
concurrent change.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.soak.ledger import Ledger, lines
from tests.soak.roles import KILLED

ROOT = Path(__file__).parents[2]

#: The delay in seconds before a query's answer is checked. By then, all records that affect the
#: answer have been written.
SETTLED = 10.0


class Process:
    """A process of the soak test. Its output is written to a file."""

    def __init__(self, role: str, home: Path, seed: int) -> None:
        self.role, self.log = role, home / f"{role}-{seed}.log"
        command = [sys.executable, "-m", "tests.soak.roles", role, str(home), str(seed)]
        with self.log.open("w") as output:
            self.process = subprocess.Popen(
                command,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    def failed(self) -> bool:
        """Whether the process exited with an error and was not killed."""
        return self.process.poll() not in (None, 0, KILLED, -signal.SIGKILL)


def problems(notes: list[dict[str, Any]], since: float, before: float) -> list[str]:
    """The errors of all statements, and the errors and wrong answers of queries that ended in the
    given interval."""
    ledger = Ledger(notes)
    found = []
    for note in notes:
        if note["what"] == "ran" and not note["typed"]:
            found.append(f"{note['verb']} failed: {note['outcome']}")
        elif note["what"] == "query" and since <= note["ended"] < before:
            wrong = ledger.judge(note)
            if wrong is not None:
                found.append(f"A query on {note['table']} ({note['kind']}) {wrong}\n    {note}")
    return found


def report(notes: list[dict[str, Any]], kills: int) -> str:
    """A summary of the outcomes of statements and queries."""
    done: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for note in notes:
        if note["what"] == "ran":
            done[note["verb"], note["outcome"].split("\n")[0][:60]] += 1
        elif note["what"] == "query":
            outcome = "failed, because files were removed" if note.get("error") else "right"
            asked[f"{note['table']}, {note['kind']}", outcome] += 1
    total = sum(1 for note in notes if note["what"] == "ran")
    text = [f"{total} statements, {sum(asked.values())} queries, {kills} kills"]
    for title, counts in (("statements", done), ("queries", asked)):
        text.append(f"  {title}")
        text += [f"    {n:6}  {what}: {how}" for (what, how), n in sorted(counts.items())]
    return "\n".join(text)


def soak(home: Path, seconds: float, seed: int, pause: float) -> int:
    """Waits until the process with the catalog is ready, then runs the test for `seconds` seconds.
    Returns 1 if an error was found."""
    print(f"seed {seed}, files in {home}", flush=True)
    chance = random.Random(seed)
    (home / "pause").write_text(str(pause))
    roles = ["catalog", "optimizer", "reader"]
    at_work = {role: Process(role, home, 1000 * seed + i) for i, role in enumerate(roles)}
    started = kills = 0
    wrong: list[str] = []
    try:
        deadline = time.monotonic() + 300
        while not (home / "ready").exists():
            if time.monotonic() > deadline or at_work["catalog"].process.poll() is not None:
                print(at_work["catalog"].log.read_text()[-5000:])
                return 1
            time.sleep(0.2)
        end = time.monotonic() + seconds
        next_kill = time.monotonic() + seconds * 0.3
        looked, next_look = 0.0, time.monotonic() + 20
        while time.monotonic() < end and not wrong and not (home / "stop").exists():
            time.sleep(0.5)
            optimizer = at_work["optimizer"]
            if time.monotonic() > next_kill:
                optimizer.kill()
                next_kill = time.monotonic() + max(20.0, seconds * 0.05) * (0.5 + chance.random())
            if optimizer.process.poll() in (KILLED, -signal.SIGKILL):
                kills, started = kills + 1, started + 1
                at_work["optimizer"] = Process("optimizer", home, 1000 * seed + 10 + started)
            wrong += [p.log.read_text()[-5000:] for p in at_work.values() if p.failed()]
            if time.monotonic() > next_look:
                settled = time.monotonic() - SETTLED
                wrong += problems(lines(home / "ledger"), looked, settled)
                looked, next_look = settled, time.monotonic() + 20
        (home / "stop").touch()
        for one in at_work.values():
            try:
                one.process.wait(timeout=180)
            except subprocess.TimeoutExpired:
                wrong.append(f"{one.role} did not end")
            if one.failed():
                wrong.append(one.log.read_text()[-5000:])
    finally:
        for one in at_work.values():
            if one.process.poll() is None:
                one.kill()
    notes = lines(home / "ledger")
    print(report(notes, kills))
    wrong = wrong or problems(notes, 0.0, float("inf"))
    for line in dict.fromkeys(wrong[:20]):
        print(f"\nWRONG: {line}")
    print("\nEvery answer was right." if not wrong else f"\n{len(wrong)} errors were found.")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1000))
    parser.add_argument("--pause", type=float, default=0.2, help="mean seconds between statements")
    parser.add_argument(
        "--folder", type=Path, help="a new folder, which is kept (default: a temporary folder)"
    )
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes
    if arguments.folder is not None:
        arguments.folder.mkdir(parents=True)
        return soak(arguments.folder.resolve(), seconds, arguments.seed, arguments.pause)
    with tempfile.TemporaryDirectory(prefix="zorder-soak-") as folder:
        return soak(Path(folder), seconds, arguments.seed, arguments.pause)


if __name__ == "__main__":
    sys.exit(main())
