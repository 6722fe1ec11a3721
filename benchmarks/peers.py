"""A table laid out as Delta, Iceberg or Hudi lays it out, by their own code.

    python benchmarks/peers.py fetch
    python benchmarks/peers.py PEER SOURCE FOLDER COLUMNS FILES

The second runs in the environment of a Spark that the peer supports, with its jars in the folder
`peers` there (`make peers` makes both). The Parquet files that the peer's table then consists of
are put into FOLDER, about FILES of them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Peer:
    """The Spark a peer runs on, its jars on Maven Central, and its settings."""

    spark: str
    jars: tuple[str, ...]
    settings: dict[str, str]

    @property
    def environment(self) -> Path:
        return ROOT / f".venv-{self.spark}"

    @property
    def is_there(self) -> bool:
        """Whether `make peers` has fetched it."""
        names = [f"{jar.split(':')[1]}-{jar.split(':')[2]}.jar" for jar in self.jars]
        return all((self.environment / "peers" / name).exists() for name in names)


DELTA = Peer(
    "4.0",
    ("io.delta:delta-spark_4.0_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
)

PEERS = {
    "Delta 4.4.0": DELTA,
    "Delta 4.4.0, liquid": DELTA,
    "Iceberg 1.10.0": Peer(
        "4.0",
        ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",),
        {
            "spark.sql.extensions":
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.peer.type": "hadoop",
        },
    ),
    "Hudi 1.2.0": Peer(
        "3.5",
        ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",),
        {
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        },
    ),
}  # fmt: skip


def fetch(peer: Peer) -> None:
    """Copies the peer's jars with Maven."""
    for jar in peer.jars:
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar}",
             f"-DoutputDirectory={peer.environment / 'peers'}"],
            check=True,
        )  # fmt: skip


def lay_out(name: str, source: Path, folder: Path, columns: Sequence[str], files: int) -> None:
    """Runs this page in the peer's environment."""
    environment = PEERS[name].environment / "bin"
    subprocess.run(
        [environment / "with-java", environment / "python", __file__, name, source, folder,
         ",".join(columns), str(files)],
        check=True,
    )  # fmt: skip


def main() -> int:
    if sys.argv[1:] == ["fetch"]:
        for peer in PEERS.values():
            fetch(peer)
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("columns")
    parser.add_argument("files", type=int)
    arguments = parser.parse_args()
    from pyspark.sql import SparkSession

    peer = PEERS[arguments.peer]
    jars = sorted(map(str, (peer.environment / "peers").glob("*.jar")))
    with tempfile.TemporaryDirectory() as home:
        builder = (
            SparkSession.builder.master("local[*]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.memory", "6g")
            .config("spark.sql.shuffle.partitions", "8")
            .config("spark.sql.warehouse.dir", home)
            .config("spark.sql.catalog.peer.warehouse", home)
            .config("spark.jars", ",".join(jars))
        )
        for key, value in peer.settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
        size = sum(f.stat().st_size for f in arguments.source.glob("*.parquet"))
        make = {"D": delta, "I": iceberg, "H": hudi}[arguments.peer[0]]
        liquid = arguments.peer.endswith("liquid")
        paths = make(
            spark, arguments.source, Path(home) / "t", arguments.columns, size // arguments.files,
            liquid)  # fmt: skip
        shutil.rmtree(arguments.folder, ignore_errors=True)
        arguments.folder.mkdir(parents=True)
        for number, path in enumerate(sorted(paths)):
            shutil.copy(unquote(urlparse(path).path), arguments.folder / f"{number:05}.parquet")
        spark.stop()
    return 0


def delta(spark, source, table, columns, size, liquid):  # type: ignore[no-untyped-def]
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(size))
    rows = spark.read.parquet(str(source))
    if liquid:
        schema = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema)
        spark.sql(f"CREATE TABLE delta.`{table}` ({schema}) USING delta CLUSTER BY ({columns})")
        rows.write.format("delta").mode("append").save(str(table))
        spark.sql(f"OPTIMIZE delta.`{table}` FULL")
    else:
        rows.write.format("delta").save(str(table))
        spark.sql(f"OPTIMIZE delta.`{table}` ZORDER BY ({columns})")
    return spark.read.format("delta").load(str(table)).inputFiles()


def iceberg(spark, source, table, columns, size, liquid):  # type: ignore[no-untyped-def]
    spark.read.parquet(str(source)).writeTo("peer.db.t").create()
    spark.sql(
        "CALL peer.system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
        f"sort_order => 'zorder({columns})', options => map('rewrite-all', 'true', "
        f"'target-file-size-bytes', '{size}'))"
    )
    return [row[0] for row in spark.sql("SELECT file_path FROM peer.db.t.files").collect()]


def hudi(spark, source, table, columns, size, liquid):  # type: ignore[no-untyped-def]
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class":
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.populate.meta.fields": "true",
        "hoodie.clustering.inline": "true",
        "hoodie.clustering.inline.max.commits": "1",
        "hoodie.clustering.plan.strategy.sort.columns": columns.replace(" ", ""),
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(size),
        "hoodie.clustering.plan.strategy.small.file.limit": str(1 << 40),
        "hoodie.clustering.plan.strategy.max.bytes.per.group": str(1 << 40),
        "hoodie.layout.optimize.enable": "true",
        "hoodie.layout.optimize.strategy": "z-order",
        "hoodie.parquet.max.file.size": str(size),
    }  # fmt: skip
    spark.read.parquet(str(source)).write.format("hudi").options(**options).save(str(table))
    return spark.read.format("hudi").load(str(table)).inputFiles()


if __name__ == "__main__":
    sys.exit(main())
