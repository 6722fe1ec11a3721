"""Adds pyzorder's jar and extension to Spark sessions, and checks that sessions run them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyzorder import bridge, errors, versions
from pyzorder._version import __version__
from pyzorder.bridge import EXTENSION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Extensions that must come after pyzorder's. The session uses the parser of the last extension,
#: and Iceberg's statements work only with Iceberg's parser. Delta's extension plans every scan that
#: an earlier extension has not planned.
LATER = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)


def jar() -> Path:
    """Returns the path of the jar for the installed PySpark.

    Raises:
        ZOrderError: PySpark is not installed, its version is not supported, or the package does
            not contain the jar.
    """
    try:
        import pyspark
    except ModuleNotFoundError:
        raise errors.pyspark_missing() from None
    spark = versions.minor(pyspark.__version__)
    if spark not in versions.supported():
        raise errors.unsupported_spark(pyspark.__version__, versions.supported())
    path = versions.jar_path(spark)
    if not path.is_file():
        present = sorted(file.name for file in path.parent.glob("*.jar"))
        raise errors.jar_missing(spark, str(path), present)
    return path


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Adds pyzorder's jar and extension to a session builder, and keeps existing settings.

    Call it before the first session of the process starts.

    Returns:
        The same builder.

    Raises:
        ZOrderError: the argument is not a builder, the jar or Java is missing, the version of Spark
            is not supported, the builder is for Spark Connect, or a session or JVM is already
            running without pyzorder. The message says what to do.
    """
    if not hasattr(builder, "_options"):
        raise errors.not_a_builder(type(builder).__name__)
    options: dict[str, Any] = builder._options
    remote = "spark.remote" in options or "SPARK_REMOTE" in os.environ
    if remote or bridge.is_connect_only():
        raise errors.connect_builder(EXTENSION)
    path = jar()
    check_java()
    check_running(path)
    check_submit_arguments(path)
    for key, addition in (("spark.jars", str(path)), ("spark.sql.extensions", EXTENSION)):
        kept = options.get(key) or default_setting(key)
        builder = builder.config(key, with_item(kept, addition, LATER))
    return builder


def check_java() -> None:
    """Raises if PySpark would have to start a JVM and there is no Java.

    Does not raise if there is a spark-env.sh, because it may set JAVA_HOME.
    """
    if bridge.running_jvm() is not None or versions.java_program() is not None:
        return
    import pyspark

    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    conf = os.environ.get("SPARK_CONF_DIR") or os.path.join(home, "conf")
    if not os.path.exists(os.path.join(conf, "spark-env.sh")):
        spark = versions.minor(pyspark.__version__)
        raise errors.java_missing(None, spark, versions.least_java(spark))


def check_running(path: Path) -> None:
    """Raises if a session or a JVM is already running without pyzorder."""
    extensions = bridge.active_extensions()
    if extensions is not None and EXTENSION not in items(extensions):
        raise errors.session_running(EXTENSION)
    jvm = bridge.running_jvm()
    if jvm is not None:
        found = bridge.manifest(jvm)
        if found is None:
            raise errors.jvm_running(str(path), EXTENSION)
        check_version(found)


def check_submit_arguments(path: Path) -> None:
    """Raises if PYSPARK_SUBMIT_ARGS has a `--jars` that lacks pyzorder's jar.

    `--jars` overrides the builder's `spark.jars`.
    """
    if bridge.running_jvm() is not None:
        return
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    for option, value in zip(arguments, [*arguments, ""][1:], strict=True):
        if option.startswith("--jars="):
            value = option.removeprefix("--jars=")
        elif option != "--jars":
            continue
        if not any(Path(item).name == path.name for item in items(value)):
            raise errors.jars_overridden(str(path))


def check_version(found: dict[str, str]) -> None:
    """Raises if the jar in the JVM and this package are from different releases."""
    version = found.get("Implementation-Version", __version__)
    if version != __version__:
        raise errors.versions_differ(__version__, version)


def check_session(spark: SparkSession) -> None:
    """Raises unless the session runs this release of pyzorder. The jar itself checks Spark's
    version (JarVersion.scala)."""
    if EXTENSION not in items(spark.conf.get("spark.sql.extensions", "") or ""):
        raise errors.not_configured(EXTENSION)
    if bridge.is_connect(spark):
        return  # the server's JVM cannot be inspected; the server's log shows what was not loaded
    found = bridge.session_manifest(spark)
    if found is None:
        raise errors.extension_not_loaded(EXTENSION)
    check_version(found)


def items(value: str) -> list[str]:
    """Splits a comma-separated setting into its items."""
    return [item.strip() for item in value.split(",") if item.strip()]


def with_item(value: str | None, addition: str, later: Sequence[str]) -> str:
    """Adds a missing item to a comma-separated setting. The item is inserted before any items in
    `later`."""
    kept = items(value or "")
    if addition not in kept:
        places = (place for place, item in enumerate(kept) if item in later)
        kept.insert(next(places, len(kept)), addition)
    return ",".join(kept)


def default_setting(key: str) -> str | None:
    """Returns a key's value in spark-defaults.conf, which a builder's setting would override."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None:
        home = os.environ.get("SPARK_HOME")
        if home is None:
            import pyspark

            home = str(Path(pyspark.__file__).parent)
        folder = str(Path(home) / "conf")
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        name, _, value = line.strip().replace("=", " ", 1).partition(" ")
        if name == key:
            return value.strip()
    return None
