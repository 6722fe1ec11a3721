"""Random queries with joins over a few small tables.

Every relation that a query reads or computes has the same columns (COLUMNS), so any two relations
can be joined, combined with UNION, or nested.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from tests.support.indexes import build
from tests.support.joins import select_list
from tests.support.scans import settings

#: Tables with an index and many files. `split` is partitioned, and `late` has a file without an
#: index entry.
FACTS = ("orders", "visits", "split", "late")

#: Tables with few rows. `code` has an index.
DIMENSIONS = ("shop", "code", "area")

INTEGERS = ("k", "n", "m", "tag")
COLUMNS = (*INTEGERS, "s", "x", "d")

ROWS = """
    CAST((id * {step} + {start}) % {keys} AS INT) AS k,
    CASE WHEN id % 9 = 3 THEN NULL ELSE CAST(id DIV 3 AS INT) END AS n,
    CAST({m} AS INT) AS m, CAST(id DIV 4 AS INT) AS tag,
    format_string('s%04d', id DIV 2) AS s,
    CASE WHEN id % 25 = 7 THEN double('NaN') WHEN id % 25 = 9 THEN double('-0.0')
         ELSE double(id % 30) END AS x,
    date_add(date'2024-01-01', CAST(id AS INT)) AS d
"""


def write(spark: SparkSession, folder: Path) -> None:
    """Writes the tables."""
    for i, name in enumerate((*FACTS, *DIMENSIONS)):
        fact = name in FACTS
        rows, files = (120, 12) if fact else (40, 2)
        columns = ROWS.format(
            step=1 if fact else 7, start=13 * i, keys=rows,
            m="id DIV 60" if name == "split" else "id % 11",
        )  # fmt: skip
        if fact:
            columns += ", repeat(uuid(), 20) AS pad"
        writer = spark.range(0, rows, 1, files).selectExpr(*select_list(columns)).write
        if name == "split":
            writer = writer.partitionBy("m")
        writer.parquet(str(folder / name))
        if fact or name == "code":
            build(spark, folder / name, "parquet")
        if name == "late":
            with settings(spark, spark__sql__zorder__write__index="false"):
                more = spark.range(rows, rows + 10, 1, 1).selectExpr(*select_list(columns))
                more.write.mode("append").parquet(str(folder / name))


def create_views(spark: SparkSession, folder: Path) -> None:
    """Creates a temporary view of each table."""
    for name in (*FACTS, *DIMENSIONS):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def settings_of(random: Random) -> dict[str, str]:
    """Session settings that affect how joins are planned and executed."""
    # Each plan runs only once, so compiling it would take longer than interpreting it.
    is_compiled = random.random() < 0.1
    return {
        "spark__sql__adaptive__enabled": random.choice(["true", "true", "false"]),
        "spark__sql__autoBroadcastJoinThreshold": random.choice(
            ["-1", "8k", "20k", "20k", "20k", "20k", "10m", "10m"]
        ),
        "spark__sql__join__preferSortMergeJoin": random.choice(["true", "false"]),
        "spark__sql__exchange__reuse": random.choice(["true"] * 15 + ["false"]),
        "spark__sql__zorder__join__maxKeys": random.choice(["10000"] * 8 + ["3", "1"]),
        # If a scan waited in vain, the query would take longer than it may (see test_joins.py).
        "spark__sql__zorder__join__maxWait": random.choice(["1h"] * 7 + ["0s", "1ms", "50ms"]),
        "spark__sql__optimizer__dynamicPartitionPruning__enabled": random.choice(["true", "false"]),
        "spark__sql__shuffle__partitions": random.choice(["2", "2", "1"]),
        "spark__sql__files__minPartitionNum": random.choice(["1", "1", "1", "2"]),
        "spark__sql__files__openCostInBytes": "0",
        "spark__sql__codegen__factoryMode": "CODEGEN_ONLY" if is_compiled else "NO_CODEGEN",
        "spark__sql__codegen__fallback": "false",
    }


class Queries:
    """Generates queries. The same seed always gives the same queries."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.names = 0

    def query(self) -> str:
        """A query that combines all rows of a random relation into a single row."""
        relation = self.relation(self.random.choice([1, 1, 1, 2, 2, 3]))
        if self.random.random() < 0.95:
            relation = f"({self.star(relation)})"
        hashed = f"pmod(xxhash64({', '.join(INTEGERS)}, s, x + 0.0D, d), 1000003)"
        return f"SELECT count(*), sum({hashed}), max(k), min(s) FROM {relation}"

    def star(self, relation: str) -> str:
        """A relation that is joined with one or two dimensions, which restrict its rows."""
        outer = self.name()
        joins = ""
        for _ in range(self.random.choice([1, 1, 1, 2])):
            inner = self.name()
            key = self.random.choice(["k", "k", "tag", "s", "d", "n"])
            kind = self.random.choice(["JOIN", "JOIN", "LEFT SEMI JOIN"])
            joins += f" {kind} {self.dimension()} {inner} ON {outer}.{key} = {inner}.{key}"
        columns = ", ".join(f"{outer}.{c} AS {c}" for c in COLUMNS)
        return f"SELECT {columns} FROM {relation} {outer}{joins}"

    def name(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def relation(self, depth: int) -> str:
        """A relation for a FROM clause, without an alias."""
        if depth <= 0:
            return self.random.choice([self.fact, self.dimension])()
        kinds = [self.joined] * 9 + [self.united] * 3 + [
            self.grouped, self.filtered, self.filtered, self.in_subquery, self.in_subquery,
            self.odd, self.renamed, self.filled, self.filled,
        ]  # fmt: skip
        return f"({self.random.choice(kinds)(depth)})"

    def fact(self) -> str:
        """A large table, often with a condition that only a few files can satisfy."""
        name = self.random.choice(FACTS)
        where = f" WHERE {self.condition(name)}" if self.random.random() < 0.25 else ""
        return f"(SELECT {', '.join(COLUMNS)} FROM {name}{where})"

    def dimension(self) -> str:
        name = self.random.choice(DIMENSIONS)
        return f"(SELECT * FROM {name} WHERE {self.condition(name)})"

    def condition(self, name: str) -> str:
        """A condition on a relation's own columns. It is selective, but some rows of a dimension
        usually match. A query without any result would be a weak test, and adaptive execution
        removes the scans from its plan."""
        low = self.random.randrange(30)
        prefix = low % (6 if name in FACTS else 2)
        return self.random.choice([
            f"{name}.k BETWEEN {low} AND {low + 5 + self.random.randrange(12)}",
            f"{name}.tag IN ({low % 10}, {(low + 3) % 10}, {(low + 6) % 10})",
            f"{name}.n < {4 + low % 10}",
            f"{name}.n IS NULL OR {name}.tag = {low % 10}",
            f"{name}.s LIKE 's00{prefix}%'",
            f"{name}.d < date_add(date'2024-01-01', {10 + low})",
            f"{name}.k < (SELECT min(tag) + {8 + low} FROM {self.random.choice(DIMENSIONS)})",
        ])  # fmt: skip

    def joined(self, depth: int) -> str:
        left, right = self.name(), self.name()
        shallow = self.random.randrange(depth)
        sides = [self.relation(depth - 1), self.relation(shallow)]
        if depth == 1 and self.random.random() < 0.7:
            sides = [self.fact(), self.random.choice([self.fact, self.dimension])()]
        if self.random.random() < 0.3:
            sides.reverse()
        kind = self.random.choice(
            ["INNER"] * 9 + ["LEFT SEMI"] * 3 + ["LEFT ANTI", "LEFT", "RIGHT", "FULL"]
        )
        keys = " AND ".join(
            self.equality(left, right) for _ in range(self.random.choice([1, 1, 1, 2]))
        )
        if self.random.random() < 0.15:
            keys += f" AND {left}.k <= {right}.k + 20"
        own = [left] if "SEMI" in kind or "ANTI" in kind else [left, left, right]
        columns = ", ".join(f"{self.random.choice(own)}.{c} AS {c}" for c in COLUMNS)
        return (
            f"SELECT {self.hint(left, right)}{columns} FROM {sides[0]} {left} "
            f"{kind} JOIN {sides[1]} {right} ON {keys}"
        )

    def equality(self, left: str, right: str) -> str:
        draw = self.random.random()
        if draw < 0.1:
            return f"{left}.n <=> {right}.n"
        if draw < 0.2:
            return f"CAST({left}.k AS BIGINT) = CAST({right}.tag AS BIGINT) + 0"
        if draw < 0.6:
            return f"{left}.k = {right}.k"
        if draw < 0.75:
            a, b = self.random.choice(INTEGERS), self.random.choice(INTEGERS)
            return f"{left}.{a} = {right}.{b}"
        column = self.random.choice(["s", "x", "d", "tag"])
        return f"{left}.{column} = {right}.{column}"

    def hint(self, left: str, right: str) -> str:
        if self.random.random() < 0.7:
            return ""
        kind = self.random.choice(["BROADCAST", "BROADCAST", "MERGE", "SHUFFLE_HASH"])
        return f"/*+ {kind}({self.random.choice([left, right])}) */ "

    def united(self, depth: int) -> str:
        kind = self.random.choice(["UNION ALL"] * 4 + ["UNION", "INTERSECT", "EXCEPT"])
        branches = [
            f"SELECT {self.mixed()} FROM {self.relation(depth - 1 - i)}"
            for i in range(self.random.choice([2, 2, 3]))
        ]
        return f" {kind} ".join(branches)

    def mixed(self) -> str:
        """A SELECT list of all columns, in which some integer columns may swap names."""
        swapped = list(INTEGERS)
        if self.random.random() < 0.3:
            self.random.shuffle(swapped)
        values = swapped if self.random.random() < 0.8 else map(self.expression, swapped)
        return ", ".join(
            [*(f"{a} AS {b}" for a, b in zip(values, INTEGERS, strict=True)), "s, x, d"]
        )

    def expression(self, column: str) -> str:
        """An expression over an integer column. It may be non-null even if the column is null."""
        constant = self.random.randrange(40)
        return self.random.choice([
            column, f"coalesce({column}, {constant})", f"{column} + 1",
            f"CASE WHEN {column} IS NULL THEN {constant} ELSE {column} END",
            f"IF({column} > {constant}, 11, {column})",
        ])  # fmt: skip

    def filled(self, depth: int) -> str:
        """An outer join in which other values may replace the nulls of unmatched rows."""
        left, right = self.name(), self.name()
        kind = self.random.choice(["LEFT", "LEFT", "FULL"])
        key = self.random.choice(["k", "tag", "n"])
        values = [f"{self.expression(f'{right}.{c}')} AS {c}" for c in ("k", "n", "tag")]
        return (
            f"SELECT {', '.join(values)}, {left}.m, {left}.s, {left}.x, {left}.d "
            f"FROM {self.fact()} {left} {kind} JOIN {self.dimension()} {right} "
            f"ON {left}.{key} = {right}.k"
        )

    def grouped(self, depth: int) -> str:
        keys = self.random.choice([["k"], ["k", "m"], ["s"], ["tag", "d"], ["x"]])
        columns = ", ".join(c if c in keys else f"max({c}) AS {c}" for c in COLUMNS)
        return f"SELECT {columns} FROM {self.relation(depth - 1)} GROUP BY {', '.join(keys)}"

    def filtered(self, depth: int) -> str:
        name = self.name()
        return f"SELECT * FROM (SELECT {self.mixed()} FROM {self.relation(depth - 1)}) {name} WHERE {self.condition(name)}"

    def in_subquery(self, depth: int) -> str:
        outer, inner = self.name(), self.name()
        source = self.relation(self.random.randrange(depth))
        column = self.random.choice(["k", "n", "tag", "s", "d"])
        test = self.random.choice([
            f"{outer}.{column} IN (SELECT {column} FROM {source} {inner})",
            f"EXISTS (SELECT 1 FROM {source} {inner} WHERE {inner}.{column} = {outer}.{column})",
            f"{outer}.{column} NOT IN (SELECT {column} FROM {source} {inner})",
            f"NOT EXISTS (SELECT 1 FROM {source} {inner} WHERE {inner}.{column} = {outer}.{column})",
            f"{outer}.m = 3 OR {outer}.{column} IN (SELECT {column} FROM {source} {inner})",
        ])  # fmt: skip
        listed = ", ".join(f"{outer}.{c}" for c in COLUMNS)
        return f"SELECT {listed} FROM {self.relation(depth - 1)} {outer} WHERE {test}"

    def odd(self, depth: int) -> str:
        """A relation into which join keys must not be pushed."""
        source, every = self.relation(depth - 1), ", ".join(COLUMNS)
        return self.random.choice([
            f"SELECT {every} FROM {source} ORDER BY {every} LIMIT {self.random.randrange(40)}",
            f"SELECT CAST(row_number() OVER (ORDER BY {every}) AS INT) AS k, n, m, tag, s, x, d FROM {source}",
            f"SELECT k, CAST(count(*) OVER (PARTITION BY k) AS INT) AS n, m, tag, s, x, d FROM {source}",
            f"SELECT max(k) AS k, n, m, max(tag) AS tag, max(s) AS s, max(x) AS x, max(d) AS d FROM {source} GROUP BY ROLLUP (n, m)",
            f"SELECT k + e AS k, n, m, tag, s, x, d FROM {source} LATERAL VIEW explode(array(0, 1)) AS e",
            f"SELECT {every} FROM {self.random.choice(FACTS)} TABLESAMPLE (60 PERCENT) REPEATABLE (7)",
        ])  # fmt: skip

    def renamed(self, depth: int) -> str:
        by = self.random.choice(["", " DISTRIBUTE BY k", " DISTRIBUTE BY m SORT BY k"])
        return f"SELECT {self.mixed()} FROM {self.relation(depth - 1)}{by}"
