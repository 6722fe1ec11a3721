"""Compares the rows that a world's predicates select with and without skipping. A world is a random
table with predicates."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from pyzorder.engines.indexing import index_files
from tests.fuzz.worlds import World, write
from tests.support import indexes, scans, sketches
from tests.support.tables import data_files

#: How many of a world's predicates are executed. For the other predicates, only the set of opened
#: files is checked.
ROWS_OF = 3

#: By how many of a world's columns rows are grouped.
GROUPED = 2

#: The number of predicates at which a table may be cut.
CUTS = 3

#: The name of the view of a world's table.
VIEW = "fuzzed"


@dataclass
class Tally:
    """Totals over several worlds."""

    worlds: int = 0
    unreadable: int = 0
    cases: int = 0
    pruned: int = 0
    files: int = 0
    skipped: int = 0
    sketched: int = 0
    cut: int = 0

    def add(self, other: Tally) -> None:
        """Adds another tally to this one."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def check(spark: SparkSession, folder: Path, world: World, by_python: bool = False) -> Tally:
    """Asserts that every predicate, its negation and its IS NULL form select the same rows with and
    without skipping. Also asserts that an outcome (TRUE, FALSE or NULL) of a predicate does not
    occur in a file for which this outcome was judged impossible.

    Leaves out predicates that fail without skipping, and worlds that plain Spark cannot read.

    Args:
        by_python: whether the index is written by `pyzorder index`, which reads only footers.
    """
    with session(spark, world):
        asked = make(spark, folder / "t", world, by_python)
        if asked is None:
            return Tally(worlds=1, unreadable=1)
        tally = Tally(worlds=1)
        try:
            total = len(data_files(folder / "t"))
            tally.cut += (folder / "t" / "_zorder" / "_journal").is_dir()
            found = scans.check_sound(spark, VIEW, asked)
            scans.check_judged(spark, VIEW, asked)
            tally.cases += len(found)
            for opened in found.values():
                tally.pruned += opened < total
                tally.files += total
                tally.skipped += total - opened
            check_rows(spark, VIEW, list(found)[:ROWS_OF])
            check_groups(spark, VIEW, list(world.columns)[-GROUPED:])
            check_distinct(spark, VIEW, list(world.columns)[-GROUPED:], ["true", *found][:ROWS_OF])
            if world.sketched:
                tally.sketched = by_sketches(spark, folder / "t", found)
        except AssertionError as error:
            raise AssertionError(f"{world!r}\n{error}") from None
        return tally


def by_sketches(spark: SparkSession, table: Path, found: dict[str, int]) -> int:
    """Returns the number of predicates for which more files are opened if the index is replaced
    with a copy without sketches."""
    content = sketches.pointer(table)
    if not content.pop("sketches", None):
        return 0
    folder = table / "_zorder" / "_index"
    content["version"] += 1
    copy = f"_snapshot-{content['version']}-copy"
    shutil.copyfile(folder / content["file"], folder / copy)
    content["file"] = copy
    (folder / f"_v{content['version']:020d}.json").write_text(json.dumps(content))
    return sum(
        len(scans.opened_or_none(spark, f"SELECT * FROM {VIEW} WHERE {p}") or ()) > opened
        for p, opened in found.items()
    )


def make(
    spark: SparkSession, table: Path, world: World, by_python: bool = False
) -> list[str] | None:
    """Writes a world's files, indexes them, and creates the view VIEW. Call this function only
    within `session`.

    Returns the predicates that plain Spark can evaluate, or None if Spark cannot read the rows.
    """
    lay_out(spark, table, world)
    schema = spark.sql(f"SELECT * FROM (SELECT {nulls(world)}) LIMIT 0").schema
    reader = spark.read.schema(world.ddl()).format(world.format)
    if not readable(spark, reader.load(str(table))):
        return None
    columns = [[name] for name in world.columns] if world.sketched else []
    indexes.build(spark, table, world.format, schema, columns=columns)
    if by_python:
        indexes.remove(spark, table, [file.name for file in data_files(table)])
        index_files(table)
    elif world.cut:
        cut(spark, table, world)
    elif world.stale:
        record_listing(spark, table, world)
    gone = [name for name in world.unindexed if (table / name).exists()]
    if gone:
        indexes.remove(spark, table, gone)
    for action, file in world.later:
        if action == "remove":
            (table / file.name).unlink(missing_ok=True)
        else:
            write(spark, table, world, file)
    if not data_files(table):
        return None
    reader.load(str(table)).createOrReplaceTempView(VIEW)
    return answerable(spark, VIEW, world.predicates)


def cut(spark: SparkSession, table: Path, world: World) -> None:
    """Indexes some predicates as expressions, and lays the table out by cuts at them. Does nothing
    if no predicate can be indexed, and leaves the files as they are if OPTIMIZE cannot rewrite
    them."""
    spark.sql(f"CREATE TABLE listed ({world.ddl()}) USING {world.format} LOCATION '{table}'")
    try:
        cuts = [p for p in dict.fromkeys(world.predicates[:CUTS]) if can_be_cut(spark, p)]
        if cuts:
            with suppress(*scans.FAILURES):  # of files whose types differ from the table's
                spark.sql(f"OPTIMIZE listed FULL ZORDER BY ({', '.join([*cuts, 'k'])})").collect()
    finally:
        spark.sql("DROP TABLE listed")


def can_be_cut(spark: SparkSession, predicate: str) -> bool:
    """Whether the table `listed` can be clustered by the predicate."""
    try:
        spark.sql(f"OPTIMIZE listed FULL ZORDER BY ({predicate}) DRY RUN").collect()
    except scans.FAILURES as failure:
        assert "ZORDER_" in str(failure), failure
        return False
    return True


def record_listing(spark: SparkSession, table: Path, world: World) -> None:
    """Makes the index record that it covers all files. REFRESH runs on a table that declares its
    schema, because Spark cannot infer a schema from files whose types differ."""
    spark.sql(f"CREATE TABLE listed ({world.ddl()}) USING {world.format} LOCATION '{table}'")
    try:
        spark.sql("REFRESH SKIPPING INDEX ON listed")
    finally:
        spark.sql("DROP TABLE listed")


def lay_out(spark: SparkSession, table: Path, world: World) -> None:
    """Empties a folder, and writes a world's files to it."""
    shutil.rmtree(table, ignore_errors=True)
    table.mkdir(parents=True)
    for file in world.files:
        write(spark, table, world, file)


def readable(spark: SparkSession, df: DataFrame) -> bool:
    """Whether plain Spark can read every row."""
    try:
        with scans.plain(spark):
            run(df)
    except scans.FAILURES:
        return False
    return True


def nulls(world: World) -> str:
    """A SELECT list of nulls with the table's types."""
    return ", ".join(
        f"CAST(NULL AS {part.split(' ', 1)[1]}) AS {part.split(' ', 1)[0]}"
        for part in world.ddl().split(", ")
    )


@contextmanager
def session(spark: SparkSession, world: World) -> Iterator[None]:
    """Applies the world's session settings. Code generation is off, because each plan runs only
    once."""
    with scans.settings(
        spark,
        spark__sql__session__timeZone=world.zone,
        spark__sql__ansi__enabled=str(world.ansi).lower(),
        spark__sql__zorder__index__maxStaleness="1h" if world.stale else "0s",
        spark__sql__codegen__wholeStage="false",
        spark__sql__adaptive__enabled="false",
        # The budgets allow sketches even for files with only a few rows. The sketches are lists of
        # values if these fit into the budget, and hashes otherwise.
        spark__sql__zorder__index__sketchBudget="1" if world.ansi else "0.03",
        # Spark's own pushdown is off, because it loses rows with NaN or -0.0 in files from other
        # writers.
        spark__sql__parquet__filterPushdown="false",
        spark__sql__orc__filterPushdown="false",
    ):
        yield


def run(df: DataFrame) -> None:
    """Computes all rows but does not fetch them, because Python dates cannot represent year 0."""
    df.write.format("noop").mode("overwrite").save()


def answerable(spark: SparkSession, view: str, predicates: Sequence[str]) -> list[str] | None:
    """The predicates that plain Spark can evaluate on all rows, or None if it cannot read the
    rows."""

    def works(columns: Sequence[str]) -> bool:
        text = ", ".join(f"({c}) AS p{i}" for i, c in enumerate(columns))
        try:
            with scans.plain(spark):
                run(spark.sql(f"SELECT *, {text} FROM {view}"))
        except scans.FAILURES:
            return False
        return True

    def among(asked: list[str]) -> list[str]:
        if works(asked):
            return asked
        half = len(asked) // 2
        return among(asked[:half]) + among(asked[half:]) if half else []

    return among(list(dict.fromkeys(predicates))) if works(["true"]) else None


def against_jar(
    spark: SparkSession, predicates: Sequence[str]
) -> Iterator[tuple[str, set[str], set[str]]]:
    """Yields each predicate, its negation and its IS NULL form, together with the files that have a
    matching row and the files that the jar opens. Leaves out queries that plain Spark cannot
    plan."""
    truth = scans.truth(spark, VIEW, predicates)
    for predicate, files in zip(predicates, truth, strict=True):
        for text, needed in (
            (predicate, files["true"]),
            (f"NOT ({predicate})", files["false"]),
            (f"({predicate}) IS NULL", files["null"]),
        ):
            opened = scans.opened_or_none(spark, f"SELECT * FROM {VIEW} WHERE {text}")
            if opened is not None:
                yield text, needed, opened


def check_rows(spark: SparkSession, view: str, predicates: Sequence[str]) -> None:
    """Compares how many rows each predicate selects with and without skipping. A single query
    evaluates all predicates."""
    compare(spark, {
        p: f"SELECT {i} AS i, 'rows' AS v, count(*) AS n, count(k) AS m FROM {view} WHERE {p}"
        for i, p in enumerate(predicates)
    })  # fmt: skip


def check_groups(spark: SparkSession, view: str, columns: Sequence[str]) -> None:
    """Compares the number of rows for each value of each column with and without skipping."""
    compare(spark, {
        f"GROUP BY {c}":
            f"SELECT {i} AS i, hex(CAST(CAST({c} AS STRING) AS BINARY)) AS v, count(*) AS n, "
            f"count(k) AS m FROM {view} GROUP BY {c}"
        for i, c in enumerate(columns)
    })  # fmt: skip


def check_distinct(
    spark: SparkSession, view: str, columns: Sequence[str], predicates: Sequence[str]
) -> None:
    """Compares the distinct values of each column with and without skipping, among the rows that
    each predicate selects."""
    queries = [(column, predicate) for column in columns for predicate in predicates]
    compare(spark, {
        f"DISTINCT {c} WHERE {p}":
            f"SELECT {i} AS i, hex(CAST(CAST({c} AS STRING) AS BINARY)) AS v FROM "
            f"(SELECT DISTINCT {c} FROM {view} WHERE {p})"
        for i, (c, p) in enumerate(queries)
    })  # fmt: skip


def compare(spark: SparkSession, queries: Mapping[str, str]) -> None:
    """Asserts that queries have the same answers with and without skipping. They run as one query.
    The first column of each is its number."""
    if not queries:
        return
    query = " UNION ALL ".join(queries.values())

    def answers() -> dict[int, list[tuple[object, ...]]]:
        found = defaultdict(list)
        for row in spark.sql(query).collect():
            found[row["i"]].append(tuple(row))
        return {i: sorted(rows, key=repr) for i, rows in found.items()}

    with scans.plain(spark):
        try:
            expected = answers()
        except scans.FAILURES:
            return  # a filter may evaluate parts of a predicate that a projection does not
    found = answers()
    wrong = [f"{name}: {found.get(i)} instead of {expected.get(i)}"
             for i, name in enumerate(queries) if found.get(i) != expected.get(i)]  # fmt: skip
    assert not wrong, "\n".join(wrong)
