"""The fallback skips the same files as the jar, except for the predicates that are listed below."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_skipping_fixtures import FIXTURES, fixtures_of
from tests.support import scans
from tests.support.fallback_files import by_jar, kept, selection

#: The values of each column in sql/skipping. {k} is the file number, and {r} is the row number,
#: from 0 to 19.
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

#: Predicates that are not evaluated with plain Spark. Plain Spark may fail to cast the strings in
#: `s`, and it resolves `_metadata` to its own hidden column.
FAILS = {"s = 5", "_metadata.file_size > 5"}

#: Patterns of predicates for which the fallback opens fewer files than the jar, and the reasons.
#: The fallback skips the file that contains only nulls, and the jar opens it.
OPENS_FEWER = {
    r"^i > \d OR length": "the jar skips such files only if the comparison is the whole condition",
    r"trunc\(": "Spark does not declare that trunc returns null for null",
    r"NOT LIKE 'a%c'": "the optimizer replaces it with three conditions joined by OR",
}

#: Patterns of predicates for which the fallback opens more files than the jar, and the reasons.
#: Each pattern matches at least one predicate in sql/skipping.
KEEPS_MORE = {
    r"\\": "sqlglot may read a string with a backslash differently than Spark",
    r"ESCAPE": "the fallback does not support LIKE with ESCAPE",
    r"\bANY\b|\bALL\b": "the fallback does not support LIKE ANY and LIKE ALL",
    r"^coalesce|^nvl|^CASE|^if|\) (=|<=>|!=) (\(|b)|IS (NULL|NOT TRUE)$": "only the jar can judge conditions that are composed of other conditions",
    r"^s = 5": "Spark casts the string column to a number",
    r"i = rand|s RLIKE|_metadata": "the fallback does not support these functions and columns",
    r"'a%c'|LIKE '%|ends|contains|ILIKE|LIKE v": "the optimizer adds IS NOT NULL, or conditions for parts of the pattern",
    r"^n = 1\.(125|255)": "the optimizer knows that no value of the column has that many digits",
    r"^tn = TIMESTAMP'": "the column is cast to TIMESTAMP, unless the optimizer casts the literal instead",
    r"^cast\(b AS": "the optimizer converts it to a comparison of booleans",
    r"> double\('NaN'\)": "no value is above NaN, but for comparisons with NaN, the fallback keeps every file with a value",
}


def made(spark: SparkSession, path: Path) -> tuple[str, Path]:
    """Creates a table for a fixture file. Returns the table's name and folder. The folder contains
    nine data files, and the last file contains only nulls."""
    name, columns = f"agree_{path.stem}", fixtures_of(path)[0].columns
    if spark.version.startswith("3."):  # in Spark 3, CHAR columns prevent skipping
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
            unsound.append(f"{predicate}: skips files with matching rows")
        elif found == jar:
            same += 1
        elif not any(re.search(r, predicate) for r in (KEEPS_MORE if found > jar else OPENS_FEWER)):
            surprises.append(f"{predicate}: opens {len(found)} instead of {len(jar)}")
    spark.sql(f"DROP TABLE {table}")
    assert not unsound, "\n".join(unsound)
    assert not surprises, "\n".join(surprises)
    assert same >= 0.6 * len(predicates), f"{same} of {len(predicates)}"
