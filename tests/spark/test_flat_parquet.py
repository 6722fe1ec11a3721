"""For flat tables, pyzorder's writer creates the same files as Spark's own writer. OPTIMIZE uses
Spark's writer for all other tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support import indexes, scans
from tests.support.tables import data_files, rows_of

#: A setting that makes OPTIMIZE use Spark's own writer, even if it is set to its default value.
SPARKS_OWN = {"parquet.page.row.count.limit": "20000"}

ROWS = 5000

#: The columns, and expressions that compute their values from `id`. Each column is null in every
#: seventh row.
COLUMNS = """
boolean     | id % 3 = 0
tinyint     | CAST(id % 256 - 128 AS TINYINT)
smallint    | CAST(id * 7 % 65536 - 32768 AS SMALLINT)
int         | CAST(hash(id) AS INT)
bigint      | xxhash64(id)
few         | id % 5
float       | CAST(sin(id) AS FLOAT)
nan         | IF(id % 11 = 0, double('nan'), IF(id % 13 = 0, -0.0D, cos(id)))
decimal9    | CAST(id * 3.17 - 5000 AS DECIMAL(9, 2))
decimal18   | CAST(id * 1234567.891 - 3000000000 AS DECIMAL(18, 4))
decimal25   | CAST((id - 2500) * 98765432109876543.21BD AS DECIMAL(25, 2))
decimal38   | CAST((2500 - id) * 98765432109876543.21BD AS DECIMAL(38, 10))
date        | date_add(date'1600-01-01', CAST(id * 37 AS INT))
timestamp   | timestamp_micros(id * 86400123457 - 30000000000000000)
ntz         | CAST(timestamp_micros(id * 123457) AS TIMESTAMP_NTZ)
months      | make_ym_interval(CAST(id - 2500 AS INT))
seconds     | make_dt_interval(0, 0, 0, id - 2500.5BD)
short       | concat('k', id % 40)
text        | concat('ß☃', sha2(CAST(id AS STRING), 256), repeat('x', CAST(id % 90 AS INT)))
bytes       | CAST(sha2(CAST(id AS STRING), 224) AS BINARY)
empty       | IF(id % 2 = 0, '', CAST(id % 3 AS STRING))
nothing     | CAST(NULL AS STRING)
""".strip()


def make(spark: SparkSession, folder: Path) -> None:
    """Writes the table in three files."""
    columns = [line.split("|", 1) for line in COLUMNS.splitlines()]
    rows = spark.range(0, ROWS, 1, 3).selectExpr(
        "id AS unique",
        *(
            f"IF((id + {number}) % 7 = 0, NULL, {expression}) AS {name.strip()}"
            for number, (name, expression) in enumerate(columns)
        ),
    )
    rows.write.parquet(str(folder))


def footer_of(file: Path) -> dict[str, Any]:
    """The content of a footer: the schema, the key-value metadata, and the column chunks' metadata
    by column."""
    footer = pq.ParquetFile(file).metadata
    columns: dict[str, list[Any]] = {}
    for group in range(footer.num_row_groups):
        for number in range(footer.num_columns):
            chunk = footer.row_group(group).column(number)
            columns.setdefault(chunk.path_in_schema, []).append(chunk)
    return {
        "rows": footer.num_rows,
        "schema": str(footer.schema).split("\n", 1)[1],
        "keys": footer.metadata,
        "version": (footer.format_version, footer.created_by),
        "encodings": {name: {c.encodings for c in chunks} for name, chunks in columns.items()},
        "codecs": {name: {c.compression for c in chunks} for name, chunks in columns.items()},
        "nulls": {
            name: sum(c.statistics.null_count for c in chunks) for name, chunks in columns.items()
        },
        "least": {name: bound(chunks, "min") for name, chunks in columns.items()},
        "greatest": {name: bound(chunks, "max") for name, chunks in columns.items()},
    }


def bound(chunks: list[Any], which: str) -> str | None:
    """The smallest "min" or the largest "max" in the statistics of the row groups."""
    values = [getattr(c.statistics, which) for c in chunks if c.statistics.has_min_max]
    return repr({"min": min, "max": max}[which](values)) if values else None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"parquet.block.size": "150000"},
        {"parquet.enable.dictionary": "false"},
        {"parquet.enable.dictionary#short": "false"},
        {"spark.sql.parquet.compression.codec": "gzip"},
        {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    ],
    ids=lambda settings: "".join(settings) or "as it comes",
)
def test_the_same_files(spark: SparkSession, tmp_path: Path, settings: dict[str, str]) -> None:
    """pyzorder's writer and Spark's own writer create the same files. The rows are clustered by a
    unique column, so both writers receive the rows in the same order."""
    ours, sparks = tmp_path / "ours", tmp_path / "sparks"
    with scans.settings(spark, **settings):
        make(spark, ours)
        shutil.copytree(ours, sparks)
        before = rows_of(spark.read.parquet(str(ours)))
        spark.sql(f"OPTIMIZE '{ours}' ZORDER BY (unique)")
        with scans.settings(spark, **SPARKS_OWN):
            spark.sql(f"OPTIMIZE '{sparks}' ZORDER BY (unique)")
    (file,), (expected,) = data_files(ours), data_files(sparks)
    assert footer_of(file) == footer_of(expected)
    assert pq.read_table(file).drop(["nan"]).equals(pq.read_table(expected).drop(["nan"]))
    assert rows_of(spark.read.parquet(str(ours))) == before
    assert (pq.ParquetFile(file).metadata.num_row_groups > 1) == ("parquet.block.size" in settings)
    assert entry(spark, ours) == entry(spark, sparks)
    assert file.stat().st_size < 1.05 * expected.stat().st_size


def entry(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The index's single entry, without the name, size and modification time of the file."""
    (text,) = indexes.loaded_frame(spark, folder).toJSON().collect()
    left_out = {"path", "size", "modification_time"}
    return {key: value for key, value in json.loads(text).items() if key not in left_out}


@pytest.mark.variants
@pytest.mark.parametrize(
    ("column", "settings", "ours"),
    [
        ("a INT", {}, True),
        ("a INT", {"parquet.block.size": "1000000"}, True),
        ("a INT", {"parquet.block.size": "10000000000"}, False),
        ("a INT", {"parquet.page.size": "1000"}, False),
        ("a INT", {"parquet.bloom.filter.enabled#a": "true"}, False),
        ("a INT", {"parquet.crypto.factory.class": "some.Factory"}, False),
        ("a TIMESTAMP", {}, True),
        ("a TIMESTAMP", {"spark.sql.parquet.outputTimestampType": "INT96"}, False),
        ("a DECIMAL(9, 2)", {}, True),
        ("a DECIMAL(9, 2)", {"spark.sql.parquet.writeLegacyFormat": "true"}, False),
        ("a ARRAY<INT>", {}, False),
        ("a STRUCT<b: INT>", {}, False),
        ("a MAP<STRING, INT>, b INT", {}, False),
        ("a STRING COLLATE UTF8_LCASE", {}, True),
    ],
)
def test_whose_writer(
    spark: SparkSession, tmp_path: Path, column: str, settings: dict[str, str], ours: bool
) -> None:
    if "COLLATE" in column and spark.version.startswith("3."):
        pytest.skip("collations need Spark 4")
    jvm: Any = spark._jvm
    session = spark._jsparkSession
    micros = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    with scans.settings(spark, **{**micros, **settings}):
        schema = spark.createDataFrame([], column)._jdf.schema()
        job = jvm.org.apache.hadoop.mapreduce.Job.getInstance(
            session.sessionState().newHadoopConf()
        )
        no_options = session.sessionState().conf().getAllConfs().empty()
        package = jvm.org.apache.spark.sql.execution.datasources.parquet
        package.ParquetFileFormat().prepareWrite(session, job, no_options, schema)
        opened = jvm.io.pyzorder.layout.write.FlatParquetWriter.open(
            str(tmp_path / "file"), job.getConfiguration(), schema
        )
    assert opened.isDefined() == ours
