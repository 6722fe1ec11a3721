"""Strategies that generate small tables with unusual files and a partly outdated index."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.fuzz import predicates
from tests.support.values import arrow, sql_type

Draw = Callable[[st.SearchStrategy[Any]], Any]

TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(7,2)",
    "decimal(38,10)", "date", "timestamp", "timestamp_ntz", "string", "binary",
    "interval month", "interval second",
]  # fmt: skip

#: The narrower types that a column may have in a file. Readers widen values to the table's type.
NARROWER = {
    "bigint": ["int", "smallint"], "int": ["smallint", "tinyint"], "smallint": ["tinyint"],
    "double": ["float"],
}  # fmt: skip

ZONES = ["UTC", "America/Los_Angeles", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"]


@dataclass
class File:
    """A data file that may lack some of the table's columns. `types` are the types of its
    columns."""

    name: str
    types: dict[str, str]
    rows: list[dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class World:
    """A table's columns and files, changes to the files after they have been indexed, and the
    session settings. If `stale` is set, queries take the list of files from the index. If
    `sketched` is set, all columns have sketches. If `cut` is set, the table is laid out by cuts at
    some of the predicates, for which the index has statistics."""

    format: str
    writer: str
    columns: dict[str, str]
    files: list[File]
    unindexed: list[str]
    later: list[tuple[str, File]]
    zone: str
    ansi: bool
    stale: bool
    predicates: list[str]
    sketched: bool = False
    cut: bool = False

    def ddl(self) -> str:
        """The table's schema."""
        return ", ".join(f"{name} {sql_type(t)}" for name, t in self.columns.items())

    def __repr__(self) -> str:
        lines = [f"-- {self.format} by {self.writer}, zone {self.zone}, ANSI {self.ansi}"]
        lines.append(f"CREATE TABLE t ({self.ddl()}) USING {self.format};")
        lines += [f"-- {file.name} {file.options}\n{insert(file)}" for file in self.files]
        names = f" ({', '.join(self.columns)})" if self.sketched else ""
        lines.append(f"CREATE SKIPPING INDEX ON t{names};")
        lines += ["-- maxStaleness is 1h"] if self.stale else []
        lines += ["-- cut at some of the predicates"] if self.cut else []
        lines += [f"-- without an entry: {name}" for name in self.unindexed]
        lines += [
            f"-- {action} {file.name} {file.options}\n{insert(file)}" for action, file in self.later
        ]
        return "\n".join(lines)


def insert(file: File) -> str:
    """The SQL statement that inserts the file's rows."""
    names = ", ".join(file.types)
    rows = [
        "(" + ", ".join(predicates.literal(row[n], t) for n, t in file.types.items()) + ")"
        for row in file.rows
    ]
    return f"INSERT INTO t ({names}) VALUES {', '.join(rows)};" if rows else "-- no rows"


@st.composite
def files(draw: Draw, name: str, columns: dict[str, str], format: str) -> File:
    """Generates a file in which most values are in a narrow range."""
    types = {}
    for column, data_type in columns.items():
        chance = draw(st.integers(0, 19))
        if chance == 0 and len(columns) > 1 and column != "k":
            continue  # the file has no such column
        narrower = NARROWER.get(data_type, []) if chance in (1, 2) else []
        types[column] = draw(st.sampled_from(narrower)) if narrower else data_type
    start = draw(st.integers(0, 950))
    rows = []
    only_null = {c for c in types if draw(st.integers(0, 14)) == 0}
    for _ in range(draw(st.integers(0 if draw(st.integers(0, 9)) == 0 else 1, 5))):
        row = {}
        for column, data_type in types.items():
            kind = draw(st.integers(0, 29))
            if column in only_null or kind < 2:
                row[column] = None
            elif kind == 2:
                row[column] = draw(predicates.of_type(data_type))
            else:
                row[column] = predicates.near(data_type, start + draw(st.integers(0, 50)))
        rows.append(row)
    options: dict[str, Any] = {}
    if format == "parquet" and draw(st.integers(0, 2)) == 0:
        options = draw(st.sampled_from([
            {"write_statistics": False}, {"version": "1.0"}, {"use_dictionary": False},
            {"use_deprecated_int96_timestamps": True}, {"data_page_version": "2.0"},
            {"coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        ]))  # fmt: skip
    return File(name, types, rows, options)


@st.composite
def worlds(draw: Draw, cases: int = 10) -> World:
    """Generates a table with `cases` predicates on it."""
    format = draw(st.sampled_from(["parquet", "parquet", "orc"]))
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    columns = {"k": draw(st.sampled_from(["int", "date", "string", "timestamp", "decimal(7,2)"]))}
    columns |= {f"c{i}": t for i, t in enumerate(types)}
    made = [draw(files(f"f{i}.{format}", columns, format)) for i in range(draw(st.integers(2, 5)))]
    later = []
    if draw(st.integers(0, 2)) == 0:
        action = draw(st.sampled_from(["append", "replace", "remove"]))
        name = "g0." + format if action == "append" else draw(st.sampled_from(made)).name
        later.append((action, draw(files(name, columns, format))))
    unindexed = [f.name for f in made if draw(st.integers(0, 9)) == 0]
    return World(
        format,
        draw(st.sampled_from(["pyarrow", "pyarrow", "spark"])),
        columns,
        made,
        unindexed,
        later,
        draw(st.sampled_from(ZONES)),
        draw(st.booleans()),
        not later and not unindexed and draw(st.booleans()),
        draw(st.lists(predicates.predicates(columns), min_size=cases, max_size=cases)),
        draw(st.booleans()),
        not later and not unindexed and draw(st.integers(0, 2)) == 0,
    )


def write(spark: SparkSession, folder: Path, world: World, file: File) -> None:
    """Writes a file to the folder. If a file of the same name exists, it is replaced."""
    path = folder / file.name
    table = pa.table({n: arrow([row[n] for row in file.rows], t) for n, t in file.types.items()})
    if world.writer == "pyarrow":
        staged = path.with_name("." + path.name)
        if world.format == "orc":
            po.write_table(table, staged)
        else:
            pq.write_table(table, staged, **file.options)
        os.replace(staged, path)
        return
    staging = folder.parent / "staging"
    staging.mkdir(exist_ok=True)
    pq.write_table(table, staging / "rows.parquet")
    schema = ", ".join(f"{name} {sql_type(t)}" for name, t in file.types.items())
    rows = spark.read.schema(schema).parquet(str(staging / "rows.parquet"))
    rows.coalesce(1).write.format(world.format).mode("overwrite").save(str(folder.parent / "out"))
    written = [f for f in (folder.parent / "out").iterdir() if f.suffix == f".{world.format}"]
    if written:
        os.replace(written[0], path)
    elif path.exists():
        path.unlink()  # Spark does not write a file without rows


def on_drawn(
    check: Callable[[World], None],
    *,
    examples: int,
    cases: int,
    number: int | None = None,
    shrink: bool = False,
) -> None:
    """Checks `examples` generated worlds with `cases` predicates each.

    `number` is the seed. Without a seed, the worlds are derived from the name of `check`, so every
    run checks the same worlds. With `shrink`, a failing world is reduced to a smaller world that
    still fails.
    """
    drawn = given(worlds(cases))(check)
    drawn = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=number is None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(drawn)
    (drawn if number is None else seed(number)(drawn))()
