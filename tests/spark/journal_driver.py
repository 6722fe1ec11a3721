"""Drives a Writer and the readers' side of the journal from Python, without any SQL statement.

Run as a program it rewrites the table given as its first argument, or executes the statement given as
its third, and kills itself at the fail point given as its second:
`python journal_driver.py /path/of/table after-commit`. Settings follow, as `key=value`.
"""

from __future__ import annotations

import shutil
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests import sessions
from tests.spark.tables import data_files


def package(spark: SparkSession) -> Any:
    """The JVM's package io.pyzorder.publish."""
    return spark._jvm.io.pyzorder.publish


def scala_seq(spark: SparkSession, items: Iterable[Any]) -> Any:
    """A Scala Seq of JVM objects."""
    array = spark._jvm.java.util.ArrayList()
    for item in items:
        array.add(item)
    buffer = getattr(spark._jvm.scala.collection, "JavaConverters").asScalaBufferConverter(array)
    return buffer.asScala().toList()


def hadoop_path(spark: SparkSession, path: str | Path) -> Any:
    return spark._jvm.org.apache.hadoop.fs.Path(f"file:{path}")


def none(spark: SparkSession) -> Any:
    return getattr(getattr(spark._jvm.scala, "None$"), "MODULE$")


def read(spark: SparkSession, table: Path, fmt: str = "parquet") -> DataFrame:
    """The table through the journal, as the skipping rule reads it."""
    return through_journal(spark, spark.read.format(fmt).load(str(table)), fmt)


def through_journal(spark: SparkSession, df: DataFrame, fmt: str = "parquet") -> DataFrame:
    """Another DataFrame over the same relation, whose listing goes through the journal now."""
    session = spark._jsparkSession
    conf = session.sessionState().newHadoopConf()
    relation = df._jdf.queryExecution().analyzed().relation()
    listing = package(spark).JournaledListing
    folders = listing.foldersOf(conf, relation.location().rootPaths(), none(spark))
    location = listing.current(
        session,
        relation.location(),
        relation.options(),
        relation.partitionSchema(),
        folders,
        scala_seq(spark, []),
    ).files()
    publish = package(spark)
    form = publish.ZOrderParquetFileFormat() if fmt == "parquet" else publish.ZOrderOrcFileFormat()
    ours = spark._jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation(
        location,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        form,
        relation.options(),
        session,
    )
    return DataFrame(session.baseRelationToDataFrame(ours), spark)


class Rewrite:
    """One run of a Writer that replaces all data files of each folder by one file."""

    def __init__(self, spark: SparkSession, table: Path, fmt: str = "parquet") -> None:
        self.spark, self.table, self.fmt = spark, table, fmt
        self.writer = package(spark).Writer.begin(
            spark._jsparkSession, hadoop_path(spark, table), "TEST"
        )
        self.inputs = [(path, path.stat()) for path in data_files(table)]
        self.staged = [self._stage(folder) for folder in sorted({p.parent for p, _ in self.inputs})]

    def _stage(self, folder: Path) -> Any:
        spark, relative = self.spark, (folder / f"new-{uuid.uuid4()}.{self.fmt}")
        name = relative.relative_to(self.table).as_posix()
        temporary = self.table.parent / f"{self.table.name}-{uuid.uuid4()}"
        rows = spark.read.format(self.fmt).load(
            [str(p) for p, _ in self.inputs if p.parent == folder]
        )
        rows.coalesce(1).write.format(self.fmt).save(str(temporary))
        target = self.writer.stagedPath(name)
        place = Path(target.toUri().getPath())
        place.parent.mkdir(parents=True, exist_ok=True)
        [written] = data_files(temporary)
        shutil.move(written, place)
        shutil.rmtree(temporary)
        return package(spark).StagedFile(target, name, place.stat().st_size, rows.count())

    def publish(self) -> None:
        spark = self.spark
        file_ref = package(spark).FileRef
        retire = [
            file_ref(
                path.relative_to(self.table).as_posix(), stat.st_size, stat.st_mtime_ns // 1_000_000
            )
            for path, stat in self.inputs
        ]
        identity = getattr(spark._jvm.scala.Predef, "$conforms")()
        self.writer.publish(
            scala_seq(spark, retire), scala_seq(spark, self.staged), scala_seq(spark, []), identity
        )


def main(table: Path, point: str, statement: str | None = None, *settings: str) -> None:
    spark = sessions.session(
        memory="600m",
        spark__sql__zorder__test__killAt=point,
        spark__sql__zorder__vacuum__retentionCheck="false",
        **dict(setting.split("=", 1) for setting in settings),
    )
    if statement is None:
        Rewrite(spark, table).publish()
    else:
        spark.sql(statement).collect()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
