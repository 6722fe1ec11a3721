"""pyzorder doctor: checks everything that pyzorder needs, and says how to fix what is wrong."""

from __future__ import annotations

import importlib.util
import platform
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from pyzorder import __version__, bridge, errors, versions
from pyzorder.cli import sessions
from pyzorder.cli.options import Settings, session_options
from pyzorder.cli.output import print_json
from pyzorder.cli.targets import Target, TargetType
from pyzorder.failures import condition, sentence
from pyzorder.session import check_session, jar
from pyzorder.table import in_backticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Check:
    """The result of a check. `says` is what was found or, if the check failed, what to do."""

    name: str
    ok: bool
    says: str


@click.command(
    "doctor",
    epilog="""\b
Examples:
  pyzorder doctor
  pyzorder doctor s3a://bucket/sales \\
    --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.5.0
  pyzorder doctor db.sales --metastore thrift://metastore:9083
  pyzorder doctor --remote sc://server:15002
""",
)
@click.argument("target", type=TargetType(), required=False)
@session_options
def command(settings: Settings, target: Target | None) -> None:
    """Check everything that pyzorder needs, and say what to fix.

    Checks Java, Spark, the jar, versions, the catalog, and the store that contains TARGET or, by
    default, the metastore's warehouse. The store is checked by creating and then deleting a file
    whose name begins with _. The exit code is 1 if something needs fixing.
    """
    failed = False
    checks = []
    for check in all_checks(settings, target):
        failed = failed or not check.ok
        checks.append(asdict(check))
        if not settings.json:
            mark = click.style("ok", fg="green") if check.ok else click.style("FIX", fg="red")
            click.echo(f"{mark}{' ' * (5 - len(click.unstyle(mark)))}{check.name:9}{check.says}")
    if settings.json:
        print_json(checks)
    if failed:
        raise SystemExit(1)


def all_checks(settings: Settings, target: Target | None) -> Iterator[Check]:
    """Yields the result of each check. Omits checks that an earlier failure makes pointless."""
    yield Check("pyzorder", True, f"{__version__}, Python {platform.python_version()}")
    here = [checked("spark", installed_spark)]
    if not settings.remote:
        if here[0].ok:
            here.append(checked("java", lambda: "{1}, {0}".format(*sessions.java())))
        here.append(checked("jar", lambda: jar().name))
    yield from here
    if not all(check.ok for check in here):
        return
    with ExitStack() as stack:
        found: list[SparkSession] = []

        def begin() -> str:
            found.append(stack.enter_context(sessions.session(settings)))
            return f"Spark {found[0].version} at {settings.remote or master(found[0])}"

        yield checked("session", begin)
        if found:
            (spark,) = found
            yield checked("versions", lambda: matching(spark))
            yield checked("catalog", lambda: catalog(spark))
            if not bridge.is_connect(spark):
                writable = checked("store", lambda: store(spark, target))
                yield writable
                if target is not None and writable.ok:
                    yield checked("layout", lambda: layout(spark, target))
            elif target is not None:
                yield checked("table", lambda: seen(spark, target))


def checked(name: str, look: Callable[[], str]) -> Check:
    """Runs a check. The check fails if it raises an exception."""
    try:
        return Check(name, True, look())
    except Exception as failure:
        return Check(name, False, sentence(failure))


def installed_spark() -> str:
    """Checks that the installed PySpark is supported."""
    if importlib.util.find_spec("pyspark") is None:
        raise errors.pyspark_missing()
    import pyspark

    if versions.minor(pyspark.__version__) not in versions.supported():
        raise errors.unsupported_spark(pyspark.__version__, versions.supported())
    return f"PySpark {pyspark.__version__}"


def master(spark: SparkSession) -> str:
    """Returns the master of a classic session."""
    return str(spark.sparkContext.master)


def matching(spark: SparkSession) -> str:
    """Checks that the extension is loaded, and matches this release and this Spark version."""
    check_session(spark)
    if bridge.is_connect(spark):
        return "the server has pyzorder's extension"
    return f"the JVM has pyzorder {__version__} for Spark {versions.minor(spark.version)}"


def catalog(spark: SparkSession) -> str:
    """Checks that the catalog responds when its databases are listed."""
    databases = len(spark.sql("SHOW DATABASES").collect())
    if in_memory(spark):
        more = "" if bridge.is_connect(spark) else ", or add --hive for the tables of a metastore"
        return f"in memory: refer to tables by their folders{more}"
    return f"Hive metastore, {databases} database{'' if databases == 1 else 's'}"


def in_memory(spark: SparkSession) -> bool:
    """Whether the catalog is in memory, and therefore contains only this session's tables."""
    return spark.conf.get(sessions.CATALOG) == "in-memory"


def store(spark: SparkSession, target: Target | None) -> str:
    """Checks that tables in the store can be locked, which requires create-if-absent."""
    if target is None and in_memory(spark):
        return "not checked: pass a TARGET to check its folder"
    folder = folder_of(spark, target)
    name = f"{folder.rstrip('/')}/_pyzorder-doctor-{uuid.uuid4()}"
    try:
        has_one_winner = bridge.creates_if_absent(spark, name)
    except Exception as failure:
        if (condition(failure) or "").startswith("ZORDER_"):
            raise
        raise errors.store_not_writable(folder, sentence(failure)) from failure
    if not has_one_winner:
        raise errors.store_has_two_winners(folder)
    return f"{folder} is writable and supports locks"


def seen(spark: SparkSession, target: Target) -> str:
    """Checks that a Spark Connect server finds a table and its files."""
    target.table(spark).vacuum(dryRun=True).collect()
    return f"the server finds {target}; write access was not checked"


def layout(spark: SparkSession, target: Target) -> str:
    """Returns a sentence that says whether an OPTIMIZE of the table would pay off."""
    return f"for OPTIMIZE without ZORDER BY: {bridge.verdict(spark, target.text(), [])['sentence']}"


def folder_of(spark: SparkSession, target: Target | None) -> str:
    """Returns the folder of a table or, by default, the warehouse."""
    if target is None:
        return spark.conf.get(sessions.WAREHOUSE) or "."
    if target.path:
        return target.path
    target.table(spark)
    name = ".".join(map(in_backticks, target.name))
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    for row in rows:
        if row["col_name"] == "Location":
            return str(row["data_type"])
    raise errors.view_has_no_folder(name)
