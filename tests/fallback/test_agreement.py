"""The fallback skips the same files as the jar for each predicate, except as listed below."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_skipping_fixtures import FIXTURES, fixtures_of
from tests.support import scans
from tests.support.fallback_files import by_jar, kept, selection

#: The values in file {k} of each column of sql/skipping; {r} is the row, 0 to 19.
VALUES = {
    "i": "int({k} * 3 + {r} % 3)", "l": "bigint({k} * 2 + {r} % 3)", "sh": "smallint({k} * 3)",
    "by": "tinyint({k} + {r} % 2)", "f": "float({k} / 4)", "d": "if({k} = 7, double('NaN'), {k} / 4D)",
    "n": "decimal({k} + {r} % 3 / 4)", "w": "CAST(({k} - 4) * 12345678901234567890.5BD AS DECIMAL(38,4))",
    "b": "{k} > 3", "dt": "add_months(DATE'2023-01-01', 3 * {k} + {r} % 3)",
    "ts": "TIMESTAMP'2023-10-01 00:00:00' + make_dt_interval({k} * 30 + {r})",
    "tn": "TIMESTAMP_NTZ'2023-10-01 00:00:00' + make_dt_interval({k} * 30 + {r})",
    "s": "concat(element_at(array('a', 'ab', 'abc', 'ab%', 'b', 'cd', 'é𝄞', 'm'), {k} + 1), if({r} = 0, '', 'c'))",
    "x": "if({k} = 3, X'00FF', CAST(CAST({k} AS STRING) AS BINARY))", "c": "'a'",
    "v": "element_at(array('a', 'ab', 'abc', 'ab', 'b', 'cd', 'e', 'm'), {k} + 1)",
    "st": "named_struct('a', int({k}), 'q.r', named_struct('z', element_at(array('j', 'k'), 1 + {k} % 2)))",
    "ar": "array(1)",
}  # fmt: skip

#: Predicates that plain Spark cannot answer: it fails on some strings, or resolves the column to
#: another one.
FAILS = {"s = 5", "_metadata.file_size > 5"}

#: Predicates for which the fallback opens fewer files than the jar: it skips files with only nulls.
OPENS_FEWER = {
    r"^i > \d OR length": "the jar sees that a comparison is not TRUE for nulls in a whole condition only",
    r"trunc\(": "Spark does not tell the jar that trunc of a null is null",
    r"NOT LIKE 'a%c'": "the optimizer makes three conditions of it, any of which may hold",
}

#: Predicates for which the fallback opens more files, and why. Each pattern matches at least one
#: predicate of sql/skipping.
KEEPS_MORE = {
    r"\\": "a backslash: Spark's strings may not be what sqlglot reads",
    r"ESCAPE": "LIKE with an escape character of its own",
    r"\bANY\b|\bALL\b": "LIKE ANY and LIKE ALL",
    r"^coalesce|^nvl|^CASE|^if|\) (=|<=>|!=) (\(|b)|IS (NULL|NOT TRUE)$": "the jar composes conditions",
    r"^s = 5": "a string that becomes a number",
    r"i = rand|s RLIKE|_metadata": "not of the list of functions",
    r"'a%c'|LIKE '%|ends|contains|ILIKE|LIKE v": "the optimizer adds IS NOT NULL, or parts of a pattern",
    r"^n = 1\.(125|255)": "the optimizer knows that no value has so many digits",
    r"^tn = TIMESTAMP'": "a local time is compared as an instant, unless the optimizer turns it round",
    r"^cast\(b AS": "the optimizer makes a comparison of booleans of it",
    r"> double\('NaN'\)": "nothing is above NaN, which the index cannot tell from other values",
}


def made(spark: SparkSession, path: Path) -> tuple[str, Path]:
    """A table for a fixture file, and its folder of nine data files. The last one
    has only nulls."""
    name, columns = f"agree_{path.stem}", fixtures_of(path)[0].columns
    if spark.version.startswith("3."):  # with CHAR, the fallback skips no files there
        columns = re.sub(r"\bCHAR\(\d+\)", "STRING", columns)
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet")
    listed = re.findall(r"(\w+) [A-Z]", re.sub(r"<.*?>+", "", columns))
    for k in range(9):
        values = [
            f"if({k} = 8 OR (id = 7 AND {k} = 2), NULL, {VALUES[c].format(k=k, r='id')})"
            for c in listed
        ]
        spark.sql(f"INSERT INTO {name} SELECT {', '.join(values)} FROM range(0, 20, 1, 1)")
    spark.sql(f"CREATE SKIPPING INDEX ON {name}")
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'")
    return name, Path(location.collect()[0]["data_type"].removeprefix("file:"))


@pytest.mark.fallback
@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.txt")), ids=lambda path: path.stem)
def test_agrees_with_the_jar(spark: SparkSession, path: Path) -> None:
    table, folder = made(spark, path)
    unsound, surprises, same = [], [], 0
    predicates = [f.predicate for f in fixtures_of(path)]
    asked = [p for p in predicates if p not in FAILS]
    truth = scans.truth(spark, table, asked)
    needed = {p: files["true"] for p, files in zip(asked, truth, strict=True)}
    for predicate in predicates:
        jar = by_jar(spark, table, predicate)
        found = kept(folder, selection(spark, table, predicate))
        if not found >= needed.get(predicate, set()):
            unsound.append(f"{predicate}: leaves out files with matching rows")
        elif found == jar:
            same += 1
        elif not any(re.search(r, predicate) for r in (KEEPS_MORE if found > jar else OPENS_FEWER)):
            surprises.append(f"{predicate}: opens {len(found)} instead of {len(jar)}")
    spark.sql(f"DROP TABLE {table}")
    assert not unsound, "\n".join(unsound)
    assert not surprises, "\n".join(surprises)
    assert same >= 0.6 * len(predicates), f"{same} of {len(predicates)}"
