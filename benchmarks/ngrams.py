"""Estimates how many files filters of n-grams would skip for `contains` and LIKE '%x%'.

    python benchmarks/ngrams.py [--files 40] [--rows 20000]

Each table is written as Parquet files of `--rows` rows each, in the order in which DuckDB generates
the rows. For each file, a filter would contain every sequence of n bytes in a column. A search for
a part of a string must open the files whose filter contains all sequences of that part. The figures
assume that a filter never contains a sequence by mistake, and that it needs BITS bits for each
sequence. pyzorder has no such filters. Prints a table, and writes it to
benchmarks/results/ngrams.md.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import report

from pyzorder import demo

#: Bits per element of a set that wrongly contains 1% of other elements.
BITS = 8

SIZES, LENGTHS, SEARCHES = (3, 4, 6), (6, 12), 200

#: The columns: their names, DuckDB's extension that generates the data, the table, and the column.
COLUMNS = [
    ("comments of orders", "tpch", "orders", "o_comment"),
    ("names of parts", "tpch", "part", "p_name"),
    ("e-mail addresses", "tpcds", "customer", "c_email_address"),
    ("UUIDs", "tpch", "(SELECT *, CAST(uuid() AS VARCHAR) AS id FROM orders)", "id"),
]


def grams(text: bytes, size: int) -> set[bytes]:
    return {text[i : i + size] for i in range(len(text) - size + 1)}


def files(
    extension: str, table: str, column: str, count: int, rows: int
) -> Iterator[tuple[list[bytes], int]]:
    """Yields, for each file, the column's values and the file's size in bytes."""
    with tempfile.TemporaryDirectory() as folder, demo.connect(extension) as connection:
        generate = "dsdgen" if extension == "tpcds" else "dbgen"
        connection.execute(f"CALL {generate}(sf = 1)")
        connection.execute(f"CREATE TABLE t AS SELECT * FROM {table} LIMIT {count * rows}")
        total = connection.execute("SELECT count(*) FROM t").fetchall()[0][0]
        for start in range(0, total - rows + 1, rows):
            chunk = f"SELECT * FROM t LIMIT {rows} OFFSET {start}"
            file = Path(folder) / "file.parquet"
            connection.execute(f"COPY ({chunk}) TO '{file}' (FORMAT parquet)")
            values = connection.execute(f"SELECT {column} FROM ({chunk})").fetchall()
            yield [value.encode() for (value,) in values if value], file.stat().st_size


def measure(name: str, extension: str, table: str, column: str, count: int, rows: int) -> Iterator[
    list[str]
]:  # fmt: skip
    """Yields a row for each n and each length of the part that is searched for."""
    draw = random.Random(1)
    parts, sizes = zip(*files(extension, table, column, count, rows), strict=True)
    texts = [b"\n".join(values) for values in parts]
    for n in SIZES:
        filters = [set[bytes]().union(*(grams(v, n) for v in values)) for values in parts]
        share = statistics.mean(
            len(f) * BITS / 8 / size for f, size in zip(filters, sizes, strict=True)
        )
        for length in LENGTHS:
            holding, opened = [], []
            for _ in range(SEARCHES):
                value = b""
                while len(value) < length:
                    value = draw.choice(draw.choice(parts))
                start = draw.randrange(len(value) - length + 1)
                part = value[start : start + length]
                wanted = grams(part, n)
                holding.append(sum(part in text for text in texts))
                opened.append(sum(wanted <= known for known in filters))
            yield [
                name, str(n), f"{100 * share:.2f}%", str(length), f"{len(parts)}",
                f"{statistics.mean(holding):.1f}", f"{statistics.mean(opened):.1f}",
            ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=40, help="maximum number of files")
    parser.add_argument("--rows", type=int, default=20_000, help="rows per file")
    arguments = parser.parse_args()
    table = [["column", "n", "size of the filters", "bytes searched for", "files",
              "files with a match", "files opened"]]  # fmt: skip
    for column in COLUMNS:
        for row in measure(*column, arguments.files, arguments.rows):
            table.append(row)
            print(" | ".join(row), flush=True)
    report.write(
        "ngrams", "What filters of n-grams would skip",
        "Each search looks for a part of a value in the table. The filters' size is relative to "
        "the size of the files. Measured by `make bench-ngrams`.", table)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
