"""The long run of the fuzz: `make fuzz CASES=50000`.

Seed by seed, each some worlds; what is done is kept in a file, so that a run goes on where the last
one ended. A difference ends the run: it is printed as SQL, made small, with its seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import pyzorder
from tests.fuzz.differential import Tally, check
from tests.fuzz.worlds import World, worlds

WORLDS = 10


def one(spark: SparkSession, folder: Path, number: int) -> Tally:
    """The worlds of one seed; raises AssertionError with the smallest difference found."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=WORLDS,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(worlds())
    def run(world: World) -> None:
        tally.add(check(spark, folder, world))

    run()
    return tally


def main() -> int:
    """Runs seeds until enough cases are done; 1: a difference was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000, help="predicates to check in all")
    parser.add_argument("--state", type=Path, default=Path("fuzz-state.json"),
                        help="what is done already; delete it to begin anew")  # fmt: skip
    parser.add_argument("--seed", type=int, help="only this seed, as a difference names it")
    arguments = parser.parse_args()
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
    )
    spark = pyzorder.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    done = {"seed": 0, "tally": vars(Tally())}
    if arguments.seed is None and arguments.state.exists():
        done = json.loads(arguments.state.read_text())
    tally = Tally(**done["tally"])
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                   TimeRemainingColumn())  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, bar:
        task = bar.add_task("cases", total=arguments.cases, completed=tally.cases)
        while tally.cases < arguments.cases:
            number = done["seed"] if arguments.seed is None else arguments.seed
            try:
                tally.add(one(spark, Path(folder), number))
            except AssertionError as error:
                bar.stop()
                print(f"{error}\n\nAgain: python -m tests.fuzz --seed {number}")
                return 1
            if arguments.seed is not None:
                break
            done = {"seed": number + 1, "tally": vars(tally)}
            arguments.state.write_text(json.dumps(done))
            share = 100 * tally.pruned / max(1, tally.cases)
            bar.update(task, completed=tally.cases, description=f"cases, {share:.0f} % prune")
    print(
        f"{tally.cases} cases in {tally.worlds} tables ({tally.unreadable} that Spark itself cannot "
        f"read), no difference; {100 * tally.pruned / max(1, tally.cases):.1f} % of the cases "
        f"skipped files: {tally.skipped} of {tally.files}."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
