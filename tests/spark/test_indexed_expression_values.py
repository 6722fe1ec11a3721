"""Random predicates on random expressions select the same rows with and without the index."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support import scans, sketches
from tests.support.sampled import long

#: Strings whose conversion to upper or lower case is unusual, empty strings, and text that
#: resembles a number.
STRINGS = [
    "", " ", "a", "A", "ab", "AB", "aB", "ß", "ẞ", "SS", "ss", "İ", "i̇", "I", "ı", "i", "Σ", "σ", "ς",
    "ΑΣ", "ας", "K", "k", "ſ", "s", "ǅ", "ǆ", "Ǆ", "ﬁ", "FI", "é", "e\u0301", "É", "\U00010400",
    "\U00010428", "日本", "\u0000", "a\u0000b", "1", " 1", "1.0", "01", "-0", "NaN", "x y", "\uffff",
]  # fmt: skip

#: Instants near clock changes, midnights and the start of the Gregorian calendar.
TIMES = [
    "1582-10-04 23:59:59", "1582-10-15 00:00:00", "1883-11-18 12:03:58", "1900-01-01 00:00:00",
    "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2010-11-07 02:30:00",
    "2010-11-07 03:31:00", "2010-11-07 02:31:01", "2018-11-04 02:59:59", "2018-11-04 03:00:00",
    "2011-12-30 10:00:00", "2024-02-29 23:59:59.5", "2024-03-10 10:00:00", "2024-12-31 18:15:00",
]  # fmt: skip

ZONES = ["UTC", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]

#: Expressions, each with literals of its type. {s}, {t} and {n} stand for random values.
EXPRESSIONS = {
    "lower(s)": ["lower('{s}')", "'{s}'"],
    "upper(s)": ["upper('{s}')", "'{s}'"],
    "trim(s)": ["'{s}'"],
    "substring(s, 1, 1)": ["'{s}'", "substring('{s}', 1, 1)"],
    "substring(s, -2)": ["'{s}'"],
    "concat(s, '-', n)": ["concat('{s}', '-', {n})", "NULL"],
    "length(s)": ["{n}", "1", "2"],
    "try_cast(s AS INT)": ["1", "{n}"],
    "to_date(t)": ["to_date(TIMESTAMP'{t}Z')", "DATE'2010-11-06'", "NULL"],
    "hour(t)": ["{n}", "23", "0"],
    "date_trunc('HOUR', t)": ["date_trunc('HOUR', TIMESTAMP'{t}Z')", "TIMESTAMP'{t}Z'"],
    "year(t) * 100 + month(t)": ["201011", "{n}"],
    "CAST(t AS STRING)": ["CAST(TIMESTAMP'{t}Z' AS STRING)"],
    "date_add(d, 1)": ["DATE'2024-03-01'", "DATE'1582-10-16'"],
    "f / 2": ["0.0D", "-0.0D", "double('NaN')", "{n}D", "double('Infinity')"],
    "-f": ["0.0D", "-0.0D", "double('NaN')", "{n}", "{n}.5"],
    "n % 3": ["0", "1L", "2S", "1.0", "NULL"],
    "coalesce(s, 'none')": ["'none'", "'{s}'"],
    "get_json_object(j, '$.a')": ["'{s}'", "NULL"],
    "st.arr[0]": ["{n}", "{n}.0"],
    "m['a']": ["{n}", "2147483648"],
    "n > 2": ["true", "false", "NULL"],
}

COMPARED = [
    "{e} = {l}", "{e} <=> {l}", "{e} != {l}", "{e} < {l}", "{e} >= {l}", "{e} IN ({l}, {k})",
    "NOT ({e} IN ({l}, {k}))", "{e} IS NULL", "{e} BETWEEN {l} AND {k}", "{e} = {l} OR n = 3",
    "{e} > {l} AND s IS NOT NULL", "coalesce({e} = {l}, n = 1)", "if({e} = {l}, n > 2, n < 1)",
]  # fmt: skip


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(str(request.node.name))


@pytest.fixture
def zone(spark: SparkSession, rng: random.Random) -> Iterator[str]:
    zone = rng.choice(ZONES)
    with scans.settings(spark, spark__sql__session__timeZone=zone):
        yield zone


def row(rng: random.Random) -> str:
    def sometimes(text: str) -> str:
        return "NULL" if rng.random() < 0.1 else text

    text = rng.choice(STRINGS)
    n = rng.randrange(6)
    time = rng.choice(TIMES)
    floating = rng.choice(["0.0", "-0.0", "'NaN'", "'Infinity'", "1", "2.5", str(n)])
    return ", ".join(
        [
            sometimes(f"'{text}'"),
            sometimes(str(n)),
            sometimes(f"TIMESTAMP'{time}Z'"),
            sometimes(f"DATE'{time[:10]}'"),
            sometimes(f"double({floating})"),
            sometimes(f"to_json(named_struct('a', '{text}'))"),
            sometimes(f"named_struct('arr', array({sometimes(str(n))}))"),
            sometimes(f"map('a', {n}, 'b', 1)"),
        ]
    )


@pytest.mark.parametrize("ansi", long(["true", "false"], "true"))
@pytest.mark.parametrize("format", ["parquet", "orc"])
@pytest.mark.parametrize("seed", long(range(3), 0))
def test_random_predicates(
    spark: SparkSession, rng: random.Random, zone: str, ansi: str, format: str, seed: int
) -> None:
    spark.conf.set(sketches.BUDGET, "10")
    spark.sql("DROP TABLE IF EXISTS odd")
    with scans.settings(spark, spark__sql__ansi__enabled=ansi):
        spark.sql(
            "CREATE TABLE odd (s STRING, n INT, t TIMESTAMP, d DATE, f DOUBLE, j STRING, "
            f"st STRUCT<arr: ARRAY<INT>>, m MAP<STRING, INT>, p INT) USING {format} "
            + ("PARTITIONED BY (p)" if seed == 0 else "")
        )
        expressions = rng.sample(sorted(EXPRESSIONS), 9)
        if seed == 1:  # INSERT collects the statistics
            spark.sql(f"CREATE SKIPPING INDEX ON odd (n, {', '.join(expressions)})")
        for _ in range(6):
            folder = rng.randrange(2)  # one per INSERT, so that no two files have the same name
            values = ", ".join(f"({row(rng)}, {folder})" for _ in range(rng.randrange(1, 5)))
            spark.sql(f"INSERT INTO odd SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")
        if seed != 1:
            spark.sql(f"CREATE SKIPPING INDEX ON odd (n, {', '.join(expressions)})")
        predicates = [predicate(rng, expressions) for _ in range(60)]
        assert scans.check_judged(spark, "odd", predicates) > 0
        scans.check_sound(spark, "odd", predicates[:12])
        for other in rng.sample(ZONES, 2):
            with scans.settings(spark, spark__sql__session__timeZone=other):
                scans.check_judged(spark, "odd", predicates)
    spark.sql("DROP TABLE odd")


def predicate(rng: random.Random, expressions: list[str]) -> str:
    expression = rng.choice(expressions)

    def literal() -> str:
        return rng.choice(EXPRESSIONS[expression]).format(
            s=rng.choice(STRINGS), t=rng.choice(TIMES), n=rng.randrange(6)
        )

    return rng.choice(COMPARED).format(e=expression, l=literal(), k=literal())


def test_case_of_all_characters(spark: SparkSession) -> None:
    """Lookups of random characters in lower and upper case skip files, but never a file with a
    matching row."""
    spark.conf.set(sketches.BUDGET, "1")
    spark.range(0, 0x3000, 1, 8).selectExpr(
        "id", "decode(unhex(lpad(hex(id + 192), 4, '0')), 'UTF-16BE') AS s"
    ).write.mode("overwrite").saveAsTable("letters")
    spark.sql("CREATE SKIPPING INDEX ON letters (lower(s), upper(s))")
    rng = random.Random(7)
    codes = [rng.randrange(192, 0x3000) for _ in range(20)]
    predicates = [
        f"{case}(s) = {case}('{chr(code)}')" for code in codes for case in ("lower", "upper")
    ]
    assert scans.check_judged(spark, "letters", predicates) > 100
    spark.sql("DROP TABLE letters")
