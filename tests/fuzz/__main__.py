"""Runs the fuzz test for a long time: `make fuzz CASES=50000`.

Each seed generates several worlds. A world is a random table with predicates. Several processes
check seeds in parallel. Finished seeds are recorded in a file, so the next run can continue from
there. The run stops at the first difference between results with and without skipping. It shrinks
the difference to a small example, and prints this example as SQL together with the seed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.fuzz.differential import Tally
from tests.fuzz.seeds import one


def main() -> int:
    """Checks seeds until the requested number of cases has been checked. Returns 1 if a difference
    was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000, help="number of predicates to check")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="number of processes")
    parser.add_argument("--state", type=Path, default=Path("fuzz-state.json"),
                        help="file that records the progress; delete it to start over")  # fmt: skip
    parser.add_argument("--seed", type=int, help="check only this seed (failures print their seed)")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        print(report(one(arguments.seed)))
        return 0
    done = {"seed": 0, "tally": vars(Tally())}
    if arguments.state.exists():
        done = json.loads(arguments.state.read_text())
    number, tally = int(done["seed"]), Tally(**done["tally"])
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )
    context = multiprocessing.get_context("spawn")
    running: deque[tuple[int, Future[Tally]]] = deque()
    with ProcessPoolExecutor(arguments.jobs, context) as pool, bar:
        task = bar.add_task("cases", total=arguments.cases, completed=tally.cases)
        while tally.cases < arguments.cases:
            while len(running) < 2 * arguments.jobs:
                running.append((number, pool.submit(one, number)))
                number += 1
            oldest, future = running.popleft()
            try:
                tally.add(future.result())
            except AssertionError as error:
                bar.stop()
                pool.shutdown(cancel_futures=True)
                print(f"{error}\n\nTo reproduce: python -m tests.fuzz --seed {oldest}")
                return 1
            arguments.state.write_text(json.dumps({"seed": oldest + 1, "tally": vars(tally)}))
            share = 100 * tally.pruned / max(1, tally.cases)
            bar.update(task, completed=tally.cases, description=f"cases, {share:.0f} % skip files")
        pool.shutdown(cancel_futures=True)
    print(report(tally))
    return 0


def report(tally: Tally) -> str:
    """A summary of what was checked."""
    return (
        f"{tally.cases} cases in {tally.worlds} tables, without a difference; Spark itself cannot "
        f"read {tally.unreadable} of the tables. "
        f"{100 * tally.pruned / max(1, tally.cases):.1f} % of the cases skipped files: "
        f"{tally.skipped} of {tally.files}. Sketches skipped files in {tally.sketched} cases. "
        f"{tally.cut} tables were laid out by cuts at predicates."
    )


if __name__ == "__main__":
    sys.exit(main())
