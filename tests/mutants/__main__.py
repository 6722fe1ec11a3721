"""Finds mutants of the predicate rules that no test detects (`make mutants`).

The rules' sources are compiled with all variants of every place that can be mutated. These places
are comparisons, && and ||, NOT, true and false, outcomes, cases, conditions, and names that have a
counterpart, such as `min` and `max`. `Active` selects a variant at run time (see Mutator.scala).
Each mutant is tested with the cases that reach its place until one of them fails. Cases that killed
other mutants on the same line run first. Cases that reach few mutants run next, and cases that
reach the most mutants run last. Stryker4s works in a similar way, but it needs ScalaTest, and the
tests of these rules run Spark's optimizer from Python.

A surviving mutant reveals a gap in the tests. The run then fails, unless explained.tsv says why the
mutant is harmless. The columns of explained.tsv are file, source line, before, after and reason. To
kill a survivor, add a line to sql/skipping.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import build
import pytest
from _pytest.runner import runtestprotocol
from pyspark.sql import SparkSession

ROOT = build.ROOT
RULES = ROOT / "jvm/src/main/scala/io/pyzorder/skipping/predicate"
OUT = ROOT / "build" / "mutants"
SURVIVORS = OUT / "survivors.tsv"
HERE = Path(__file__).parent
EXPLAINED = HERE / "explained.tsv"

#: Files without rules. The classes in these files create boxes for display or collect join keys.
LEFT_OUT = {"PredicateBox.scala", "JoinKeyFilter.scala", "KeyValues.scala"}

#: The modules that contain cases, from the fastest to the slowest.
CASES = [
    "tests/mutants/cases.py",
    "tests/property/test_index_filter.py",
    "tests/property/test_z_value_range_filter.py",
    "tests/property/test_dst_day_repeats.py",
    "tests/spark/test_wrong_answers.py",
    "tests/spark/test_z_value_ranges.py",
]

#: The number of cases that run last because they reach the most mutants. An example is a case that
#: checks a whole fixture file.
LAST = 5


class Mutant(NamedTuple):
    """A variant of the code at one place."""

    number: int
    file: str
    line: int
    column: int
    before: str
    after: str
    compiles: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}  {self.before}  ->  {self.after}"

    @property
    def key(self) -> tuple[str, ...]:
        """The mutant's key in explained.tsv. It does not contain a line number."""
        source = (RULES / self.file).read_text(encoding="utf-8").splitlines()[self.line - 1]
        return self.file, " ".join(source.split()), self.before, self.after


def compile_all() -> list[Mutant]:
    """Builds the jar with all mutants, OUT/mutants.jar, unless an up-to-date one exists."""
    spark, home = build.installed_spark()
    production = build.build(spark, home, ROOT / "pyzorder" / "jars")
    made, listed = OUT / "made", OUT / "mutants.tsv"
    inputs = build.digest(spark, [HERE / "Mutator.scala"])
    if not made.exists() or made.read_text() != inputs:
        write_jar(home, production, listed)
        made.write_text(inputs)
    rows = (line.split("\t") for line in listed.read_text(encoding="utf-8").splitlines())
    found = [Mutant(int(n), f, int(a), int(b), x, y, ok == "true") for n, f, a, b, x, y, ok in rows]
    return [mutant for mutant in found if mutant.file not in LEFT_OUT]


def write_jar(home: Path, production: Path, listed: Path) -> None:
    """Runs Mutator.scala on the rules, and replaces their classes in a copy of the production
    jar."""
    java = build.java_command()
    tool, classes = OUT / "tool", OUT / "classes"
    for folder in (tool, classes):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    build.compile_classes(home, java, [], [HERE / "Mutator.scala"], tool)
    path = os.pathsep.join([str(tool), f"{home}/jars/*", str(production)])
    arguments = [str(classes), str(listed), *map(str, sorted(RULES.glob("*.scala")))]
    main = "io.pyzorder.mutants.Mutator"
    subprocess.run([java, "-Xss8m", "-cp", path, main, *arguments], check=True)
    compiled = {f.relative_to(classes).as_posix(): f for f in classes.rglob("*.class")}
    with zipfile.ZipFile(production) as old, zipfile.ZipFile(OUT / "mutants.jar", "w") as new:
        for entry in old.infolist():
            if entry.filename not in compiled:
                new.writestr(entry, old.read(entry))
        for name, file in compiled.items():
            new.write(file, name)


class Mutation:
    """A pytest plugin that runs each case without mutants, and then each mutant with the cases that
    reach it."""

    def __init__(self, mutants: list[Mutant], most: int) -> None:
        self.most = most
        self.alive = {mutant.number: mutant for mutant in mutants}
        self.killed: dict[int, str] = {}
        self.reached: set[int] = set()

    @property
    def active(self) -> Any:
        session = SparkSession.getActiveSession()
        assert session is not None
        return session._jvm.io.pyzorder.mutants.Active

    def passes(self, item: pytest.Item, items: list[pytest.Item]) -> bool:
        """Runs a case and returns whether it passes. Keeps the fixtures that the case shares with
        other cases in its module."""
        following = next(other for other in items if other is not item)
        reports = runtestprotocol(item, log=False, nextitem=following)
        self.said = "\n".join(str(report.longrepr) for report in reports if report.failed)
        return not self.said

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        known = explained()
        modules = [list(items) for _, items in groupby(session.items, lambda item: item.path)]
        for number, items in enumerate(modules):
            self.passes(items[0], items)  # sets up the fixtures that the module's cases share
            reach: dict[int, list[pytest.Item]] = {}
            weight: dict[pytest.Item, int] = {}
            killers: dict[tuple[str, int], list[pytest.Item]] = {}
            for item in items:
                self.active.reached()
                if not self.passes(item, items):
                    raise pytest.UsageError(f"{item.nodeid} fails without a mutant:\n{self.said}")
                reached = self.active.reached().split()
                weight[item] = len(reached)
                for mutant in map(int, reached):
                    reach.setdefault(mutant, []).append(item)
            self.reached |= reach.keys()
            for mutant in list(self.alive):
                one = self.alive[mutant]
                if number > 0 and one.key in known:
                    continue  # slow modules run only for unexplained mutants
                self.active.set(mutant)
                near = killers.setdefault((one.file, one.line), [])
                asked = sorted(reach.get(mutant, []), key=lambda i: (i not in near, weight[i]))
                for item in asked[: self.most] + asked[self.most :][-LAST:]:
                    if not self.passes(item, items):
                        near.append(item)
                        self.killed[mutant] = item.name
                        print(f"killed  {self.alive.pop(mutant)}  by {item.name}", flush=True)
                        break
                else:
                    print(f"alive   {one}  after {len(asked)} cases", flush=True)
            self.active.set(-1)
            following = modules[number + 1][0] if number + 1 < len(modules) else None
            runtestprotocol(items[0], log=False, nextitem=following)
        return True


def explained() -> dict[tuple[str, ...], str]:
    """The reasons in explained.tsv, by mutant key."""
    lines = EXPLAINED.read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return {tuple(key): why for *key, why in rows}


def main() -> int:
    """Returns 1 if a mutant survives without an explanation, or if an explanation does not match
    any survivor."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, help="number of mutants to draw, with a fixed seed")
    parser.add_argument(
        "--most", type=int, default=40, help="maximum number of a module's cases per mutant"
    )
    parser.add_argument(
        "--file",
        nargs="+",
        help="only mutants in these files or on these lines, "
        "for example Judgement.scala IndexFilter.scala:9",
    )
    parser.add_argument(
        "--again", action="store_true", help="only mutants that survived the last run"
    )
    parser.add_argument(
        "--cases", nargs="+", default=CASES, help="test files to run against the mutants"
    )
    arguments = parser.parse_args()
    found = compile_all()
    mutants = [mutant for mutant in found if mutant.compiles]
    if arguments.file:
        mutants = [m for m in mutants if {m.file, f"{m.file}:{m.line}"} & set(arguments.file)]
    if arguments.again:
        rows = SURVIVORS.read_text(encoding="utf-8").splitlines()
        last = {tuple(row.split("\t")[:4]) for row in rows}
        mutants = [mutant for mutant in mutants if mutant.key in last]
    if arguments.sample is not None and arguments.sample < len(mutants):
        mutants = random.Random(7).sample(mutants, arguments.sample)
    settings = {"spark.driver.extraClassPath": str(OUT / "mutants.jar")}
    os.environ["PYZORDER_TEST_SETTINGS"] = json.dumps(settings)
    mutation = Mutation(mutants, arguments.most)
    options = ["-q", "-s", "-p", "no:cacheprovider", "-m", "", "--rootdir", str(ROOT)]
    ended = pytest.main([*options, *arguments.cases], plugins=[mutation])
    if ended != pytest.ExitCode.OK and ended != pytest.ExitCode.NO_TESTS_COLLECTED:
        return int(ended)
    known = explained()
    survivors = list(mutation.alive.values())
    open_ones = [mutant for mutant in survivors if mutant.key not in known]
    part = arguments.sample is not None or arguments.file or arguments.again
    whole = not part and arguments.cases == CASES
    idle = set(known) - {mutant.key for mutant in survivors} if whole else set()
    for mutant in open_ones:
        how = "survives" if mutant.number in mutation.reached else "is not reached"
        print(f"{how}  {mutant}")
    for key in sorted(idle):
        print("explained.tsv has an entry for a mutant that does not survive:", *key)
    with SURVIVORS.open("w", encoding="utf-8") as file:
        file.writelines("\t".join((*m.key, f"line {m.line}")) + "\n" for m in open_ones)
    by_file = Counter(mutant.file for mutant in mutants)
    for name, count in sorted(by_file.items()):
        left = sum(mutant.file == name for mutant in survivors)
        print(f"{name}: {count - left} of {count} killed")
    print(
        f"{len(mutants)} mutants: {len(mutation.killed)} killed, {len(survivors)} survived, "
        f"{len(survivors) - len(open_ones)} of them explained; "
        f"{sum(not m.compiles for m in found)} others do not compile"
    )
    return 1 if open_ones or idle else 0


if __name__ == "__main__":
    sys.exit(main())
