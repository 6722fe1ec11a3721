"""Lays out a table with Delta, Iceberg or Hudi, for comparison with pyzorder.

    python benchmarks/peers.py fetch [PEER …]
    python benchmarks/peers.py lay-out PEER SOURCE FOLDER COLUMNS FILES
    python benchmarks/peers.py time PEER SOURCE FOLDER COLUMNS FILES

`lay-out` and `time` run in the environment of a Spark version that the peer supports. The folder
`peers` in that environment contains the peer's jars. `make peers` creates the environment and the
folder. With `lay-out`, the peer writes a table with about FILES Parquet files, and the script
copies these files to FOLDER. `time` alternates between a plain rewrite, pyzorder's OPTIMIZE and the
peer's OPTIMIZE, and prints their durations in seconds as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Number of times that `time` measures each kind of rewrite.
ROUNDS = 3

#: The maximum number of attempts that `lay-out` makes to reach the requested number of files.
TRIES = 5

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Peer:
    """A project that pyzorder is compared with: its Spark version, its jars on Maven Central, and
    its settings."""

    spark: str
    jars: tuple[str, ...]
    settings: dict[str, str]

    @property
    def environment(self) -> Path:
        return ROOT / f".venv-{self.spark}"

    @property
    def is_there(self) -> bool:
        """Whether `make peers` has fetched the peer's jars."""
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

ICEBERG = Peer(
    "4.0",
    ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",),
    {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.peer": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.peer.type": "hadoop",
        "spark.sql.ansi.enabled": "false",  # Iceberg casts dates to numbers
    },
)

#: The peers whose layouts are compared.
PEERS = {
    "Delta 4.4.0": DELTA,
    "Delta 4.4.0, liquid": DELTA,
    "Iceberg 1.10.0": ICEBERG,
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

#: The peers that read tables of many files, each on the newest Spark version that it supports.
READERS = {
    "Delta 4.4.0": Peer(
        "4.2", ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
        DELTA.settings,
    ),
    "Iceberg 1.12.0": Peer(
        "4.1", ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",), ICEBERG.settings
    ),
}  # fmt: skip


def fetch(peer: Peer) -> None:
    """Fetches the peer's jars with Maven."""
    for jar in peer.jars:
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={jar}",
             f"-DoutputDirectory={peer.environment / 'peers'}"],
            check=True,
        )  # fmt: skip


def lay_out(name: str, source: Path, folder: Path, columns: Sequence[str], files: int) -> None:
    """Writes the peer's layout of the files in `source` to `folder`."""
    _run("lay-out", name, source, folder, columns, files)


def seconds(
    name: str, source: Path, folder: Path, columns: Sequence[str], files: int
) -> dict[str, list[float]]:
    """Returns how many seconds a plain rewrite, pyzorder's OPTIMIZE and the peer's OPTIMIZE take.

    All three run on the peer's Spark version.

    Args:
        folder: a folder for temporary files.
    """
    said = _run("time", name, source, folder, columns, files)
    found: dict[str, list[float]] = json.loads(said.splitlines()[-1])
    return found


def _run(
    what: str, name: str, source: Path, folder: Path, columns: Sequence[str], files: int
) -> str:
    """Runs this script in the peer's environment."""
    environment = PEERS[name].environment / "bin"
    return subprocess.run(
        [environment / "with-java", environment / "python", __file__, what, name, source, folder,
         ",".join(columns), str(files)],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip


def main() -> int:
    if sys.argv[1:2] == ["fetch"]:
        named = [PEERS[name] for name in sys.argv[2:]]
        for peer in named or [*PEERS.values(), *READERS.values()]:
            fetch(peer)
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["lay-out", "time"])
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("columns")
    parser.add_argument("files", type=int)
    arguments = parser.parse_args()
    import pyzorder

    with tempfile.TemporaryDirectory() as home:
        spark = pyzorder.configure(session_builder(PEERS[arguments.peer], home)).getOrCreate()
        if arguments.what == "time":
            print(json.dumps(time_all(spark, arguments, Path(home))))
        else:
            files = as_many(spark, arguments, Path(home) / "t")
            shutil.rmtree(arguments.folder, ignore_errors=True)
            arguments.folder.mkdir(parents=True)
            for number, path in enumerate(sorted(files)):
                shutil.copy(unquote(urlparse(path).path), arguments.folder / f"{number:05}.parquet")
        spark.stop()
    return 0


def session_builder(
    peer: Peer, home: str, settings: Mapping[str, str] | None = None
) -> SparkSession.Builder:
    """Returns a builder of sessions with the peer's jars and settings, without pyzorder.

    Args:
        settings: further settings. Their jars are added to those of the peer.
    """
    from pyspark.sql import SparkSession

    more = dict(settings or {})
    jars = sorted(map(str, (peer.environment / "peers").glob("*.jar")))
    jars += filter(None, more.pop("spark.jars", "").split(","))
    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config("spark.sql.warehouse.dir", home)
        .config("spark.sql.catalog.peer.warehouse", home)
        .config("spark.jars", ",".join(jars))
    )
    for key, value in {**peer.settings, **more}.items():
        builder = builder.config(key, value)
    return builder


#: A function that rewrites a peer's table, and a function that returns the new files.
Prepared = tuple[Callable[[], object], Callable[[], Sequence[str]]]


def as_many(spark: SparkSession, arguments: argparse.Namespace, table: Path) -> Sequence[str]:
    """Lays out the table in about `arguments.files` files, and returns these files.

    If one target size gives too many files and another gives too few, tries a size between the two.
    """
    target = size_of(arguments.source) // arguments.files
    written: Sequence[str] = ()
    too_many = too_few = 0
    for _ in range(TRIES):
        before = len(written)
        run, files = prepare(spark, arguments, table, target)
        run()
        written = files()
        if abs(len(written) - arguments.files) <= 0.03 * arguments.files:
            break
        if len(written) > arguments.files:
            too_many = target
        else:
            too_few = target
        if too_many and too_few:
            target = math.isqrt(too_many * too_few)
        elif len(written) == before:
            break
        else:
            target = target * len(written) // arguments.files
    return written


def prepare(
    spark: SparkSession, arguments: argparse.Namespace, table: Path, target: int
) -> Prepared:
    """Writes the rows to a table in the peer's format, and prepares a rewrite to files of `target`
    bytes."""
    make = {"D": delta, "I": iceberg, "H": hudi}[arguments.peer[0]]
    shutil.rmtree(table, ignore_errors=True)
    return make(
        spark, arguments.source, table, arguments.columns, target,
        arguments.peer.endswith("liquid"))  # fmt: skip


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.parquet"))


def time_all(
    spark: SparkSession, arguments: argparse.Namespace, home: Path
) -> dict[str, list[float]]:
    """Returns how many seconds each rewrite takes in each round. The preparation is not
    measured."""
    from pyzorder import ZOrderTable

    rows = spark.read.parquet(str(arguments.source))

    def plain(folder: Path) -> Callable[[], object]:
        return lambda: rows.write.parquet(str(folder))

    def pyzorder(folder: Path) -> Callable[[], object]:
        rows.write.parquet(str(folder))
        target = size_of(folder) // arguments.files
        spark.conf.set("spark.sql.zorder.optimize.targetFileSize", str(target))
        optimize = ZOrderTable.forPath(spark, str(folder)).optimize()
        return lambda: optimize.executeZOrderBy(*arguments.columns.split(","))

    def peer(folder: Path) -> Callable[[], object]:
        return prepare(spark, arguments, folder, size_of(arguments.source) // arguments.files)[0]

    found: dict[str, list[float]] = {"plain rewrite": [], "pyzorder": [], arguments.peer: []}
    for _ in range(ROUNDS):
        for (_, taken), way in zip(found.items(), (plain, pyzorder, peer), strict=True):
            shutil.rmtree(home / "t", ignore_errors=True)
            run = way(home / "t")
            begun = time.monotonic()
            run()
            taken.append(time.monotonic() - begun)
    return found


def delta(  # type: ignore[no-untyped-def]
    spark, source, table, columns, size, liquid
) -> Prepared:
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(size))
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", str(size))
    rows = spark.read.parquet(str(source))
    if liquid:
        schema = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in rows.schema)
        spark.sql(f"CREATE TABLE delta.`{table}` ({schema}) USING delta CLUSTER BY ({columns})")
        rows.write.format("delta").mode("append").save(str(table))
        statement = f"OPTIMIZE delta.`{table}` FULL"
    else:
        rows.write.format("delta").save(str(table))
        statement = f"OPTIMIZE delta.`{table}` ZORDER BY ({columns})"
    return (
        lambda: spark.sql(statement).collect(),
        lambda: spark.read.format("delta").load(str(table)).inputFiles(),
    )


def iceberg(  # type: ignore[no-untyped-def]
    spark, source, table, columns, size, liquid
) -> Prepared:
    spark.sql("DROP TABLE IF EXISTS peer.db.t PURGE")
    spark.read.parquet(str(source)).writeTo("peer.db.t").create()
    written = spark.sql("SELECT sum(file_size_in_bytes) FROM peer.db.t.files").collect()[0][0]
    size = written * size // size_of(source)
    statement = (
        "CALL peer.system.rewrite_data_files(table => 'db.t', strategy => 'sort', "
        f"sort_order => 'zorder({columns})', options => map('rewrite-all', 'true', "
        f"'target-file-size-bytes', '{size}', "
        f"'max-file-size-bytes', '{1 << 40}'))"  # files above the target are not split
    )
    return (
        lambda: spark.sql(statement).collect(),
        lambda: [row[0] for row in spark.sql("SELECT file_path FROM peer.db.t.files").collect()],
    )


def hudi(  # type: ignore[no-untyped-def]
    spark, source, table, columns, size, liquid
) -> Prepared:
    writing = {
        "hoodie.parquet.compression.codec": "snappy",
        "hoodie.metadata.enable": "false",
    }
    inserting = {
        **writing,
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "bulk_insert",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.datasource.write.keygenerator.class":
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        "hoodie.bulkinsert.shuffle.parallelism": "4",
        "hoodie.parquet.max.file.size": str(1 << 30),
    }  # fmt: skip
    spark.read.parquet(str(source)).write.format("hudi").options(**inserting).save(str(table))
    clustering = {
        **writing,
        # The number of parts into which Hudi cuts the curve is the input's size divided by this
        # setting.
        "hoodie.clustering.plan.strategy.target.file.max.bytes":
            size * size_of(table) // size_of(source),
        # Hudi then cuts each part into files. With this ratio, the rows of a file may take up 100
        # times as many bytes in memory as the setting above specifies.
        "hoodie.parquet.compression.ratio": 99,
        "hoodie.clustering.plan.strategy.small.file.limit": 1 << 40,
        "hoodie.clustering.plan.strategy.max.bytes.per.group": 1 << 40,
    }  # fmt: skip
    options = ",".join(f"{name}={value}" for name, value in clustering.items())
    statement = (
        f"CALL run_clustering(path => '{table}', op => 'scheduleAndExecute', "
        f"order => '{columns}', order_strategy => 'z-order', options => '{options}')"
    )
    return (
        lambda: spark.sql(statement).collect(),
        lambda: spark.read.format("hudi").load(str(table)).inputFiles(),
    )


if __name__ == "__main__":
    sys.exit(main())
