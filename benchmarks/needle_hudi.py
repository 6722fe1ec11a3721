"""Asks Hudi the queries of `needle.py`, which runs this script with Hudi's Spark.

python benchmarks/needle_hudi.py --child FILES ROWS QUERIES
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import needle
import peers
from pyspark.sql import SparkSession

from pyzorder import demo

PEER = peers.PEERS[needle.HUDI]


def write(spark: SparkSession, folder: Path, files: int, rows: int) -> None:
    """Writes the rows with Hudi's record index of `uid` and its Bloom filter index of
    `lower(email)`."""
    options = {
        "hoodie.table.name": "peer",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.recordkey.field": "uid",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class":
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bulkinsert.sort.mode": "NONE",
        "hoodie.parquet.max.file.size": str(1 << 30),
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
    }  # fmt: skip
    written = needle.rows_of(spark, files * rows, files, with_event=False)
    written.write.format("hudi").options(**options).save(str(folder))
    lock = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
    spark.sql(f"SET hoodie.write.lock.provider={lock}")
    spark.sql(f"CREATE TABLE peer USING hudi LOCATION '{folder}'")
    spark.sql("CREATE INDEX lower_email ON peer USING bloom_filters(email) OPTIONS(expr='lower')")
    reading = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
    found = spark.read.format("hudi").options(**reading).load(str(folder))
    found.withColumnRenamed("_hoodie_file_name", "file_name").createOrReplaceTempView("t")


def main() -> None:
    files, rows, queries = map(int, sys.argv[2:])
    with tempfile.TemporaryDirectory(dir=demo.OUTPUT) as folder:
        home = Path(folder).resolve()
        spark = peers.session_builder(PEER, str(home)).getOrCreate()
        write(spark, home / "t", files, rows)
        results = needle.results(spark, needle.HUDI, files, rows, queries)
        print(json.dumps(results, default=vars))


if __name__ == "__main__":
    main()
