"""Provides the session for a command: in a new Spark application, on a Connect server, or in the
caller's Spark application."""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

import click
from rich.console import Console

from pyzorder import bridge, errors, versions
from pyzorder.cli.options import Settings
from pyzorder.failures import sentence
from pyzorder.session import configure, default_setting, jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Default settings of a new session. The option --conf overrides them.
DEFAULTS = {"spark.app.name": "pyzorder", "spark.ui.showConsoleProgress": "false"}

#: A module of the JDK that Spark 4's launcher always adds.
VECTOR_MODULE = "jdk.incubator.vector"

CATALOG, WAREHOUSE = "spark.sql.catalogImplementation", "spark.sql.warehouse.dir"


@contextmanager
def session(settings: Settings) -> Iterator[SparkSession]:
    """Provides a session with these settings, and stops it after the `with` block.

    Programs and tests can pass an existing session as Click's context object. The command then uses
    a new session of the same Spark application, and does not stop it.

    Raises:
        ZOrderError: Spark cannot be started or reached.
    """
    _hush()
    running = click.get_current_context().obj
    if running is not None:
        spark = running.newSession()
        for key, value in settings.conf.items():
            spark.conf.set(key, value)
        yield spark
        return
    with tempfile.TemporaryDirectory(prefix="pyzorder-") as scratch:
        console = Console(stderr=True, quiet=settings.quiet)
        try:
            with console.status("Starting Spark") if console.is_terminal else nullcontext():
                spark = connected(settings) if settings.remote else started(settings, scratch)
        except (errors.ZOrderError, click.ClickException):
            raise
        except Exception as failure:
            at = settings.remote or settings.master
            raise errors.spark_not_started(at, sentence(failure).rstrip(".")) from failure
        try:
            if settings.remote:
                for key, value in settings.conf.items():
                    spark.conf.set(key, value)
            yield spark
        finally:
            with suppress(Exception):  # fails if the JVM has exited, which was already reported
                spark.stop()


def _hush() -> None:
    """Disables PySpark's logging of query failures to stderr. Failures are raised anyway."""
    with suppress(ImportError):  # PySpark is not installed, or is 3.5, which lacks these loggers
        from pyspark.logger import PySparkLogger

        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).disabled = True


def connected(settings: Settings) -> SparkSession:
    """Connects to a Spark Connect server."""
    url = urlsplit(settings.remote or "")
    if url.scheme != "sc" or not url.hostname:
        raise click.BadParameter(
            f"{settings.remote!r} is not a server address: write --remote sc://host:port."
        )
    address = (url.hostname, url.port or 15002)
    try:  # gRPC itself would retry for minutes
        socket.create_connection(address, timeout=10).close()
    except OSError as failure:
        raise errors.no_connect_server(
            f"{address[0]}:{address[1]}", failure.strerror or str(failure)
        ) from None
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise errors.pyspark_missing() from None
    return SparkSession.builder.remote(settings.remote or "").getOrCreate()


def started(settings: Settings, scratch: str) -> SparkSession:
    """Starts a session with pyzorder in this process. The JVM's output goes to the log.

    An in-memory catalog starts empty, so its warehouse defaults to the temporary folder `scratch`.
    """
    jar()  # raises if PySpark or the jar is missing
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    conf = {**DEFAULTS, **settings.conf}
    kind = conf.get(CATALOG) or default_setting(CATALOG)
    if not settings.hive and kind != "hive" and default_setting(WAREHOUSE) is None:
        conf.setdefault(WAREHOUSE, scratch)
    for key, value in conf.items():
        builder = builder.config(key, value)
    if settings.master:
        builder = builder.master(settings.master)
    if settings.hive:
        builder = builder.enableHiveSupport()
    builder = configure(builder)
    if bridge.running_jvm() is not None:  # under spark-submit
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark
    java()
    with log_file(settings) as log:
        try:
            bridge.launch_jvm(builder._options, log)
        except Exception as failure:
            raise errors.jvm_not_started(last_words(log).rstrip(".")) from failure
    return builder.getOrCreate()


@contextmanager
def log_file(settings: Settings) -> Iterator[IO[bytes]]:
    """Opens the file for the JVM's output: the file that --log names, or a temporary file."""
    if settings.log:
        try:
            settings.log.open("ab").close()
        except OSError as failure:
            raise click.BadParameter(
                f"--log {settings.log} cannot be written ({failure.strerror}): use another file."
            ) from None
    with open(settings.log, "a+b") if settings.log else tempfile.TemporaryFile() as log:
        yield log


def last_words(log: IO[bytes]) -> str:
    """Returns the line of a JVM's output that best explains why it exited."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    told = [line for line in lines if re.search(r"(?i)error|exception|not found|unrecog", line)]
    return (told or [line for line in lines if line] or ["it printed nothing"])[0]


def java() -> tuple[str, str]:
    """Returns the Java program that Spark would start, and its version from `java -version`.

    Raises:
        ZOrderError: Java is missing, or is too old or incomplete for the installed Spark.
    """
    import pyspark

    spark = versions.minor(pyspark.__version__)
    needed, program = versions.least_java(spark), versions.java_program()
    try:
        said = subprocess.run([program or "java", "-version"], capture_output=True, text=True)
    except OSError:
        raise errors.java_missing(program, spark, needed) from None
    found = re.search(r'version "((\d+)[^"]*)"', said.stderr + said.stdout)
    if found is None:
        raise errors.java_missing(program, spark, needed)
    release = int(found[2]) if found[2] != "1" else int(found[1].split(".")[1])
    if release < needed:
        raise errors.java_too_old(str(program), found[1], spark, needed)
    with_module = [str(program), f"--add-modules={VECTOR_MODULE}", "-version"]
    if spark != "3.5" and subprocess.run(with_module, capture_output=True).returncode != 0:
        raise errors.java_incomplete(str(program), spark, VECTOR_MODULE)
    return str(program), found[1]
