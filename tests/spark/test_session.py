"""Tests every way in which pyzorder.configure and check_session can fail.

Most tests run in separate Python processes, because a JVM's jars cannot be changed once it has
started.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from pyzorder import versions

PRELUDE = """
import pyzorder
from pyzorder import bridge, versions, session
from pyspark.sql import SparkSession
def plain():
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    return builder.config("spark.driver.host", "127.0.0.1").config(
        "spark.driver.bindAddress", "127.0.0.1")
"""


def run(script: str, tmp_path: Path, **environment: str) -> str:
    """Runs a script in a separate process and returns its output. An uncaught ZOrderError is
    printed on one line."""
    body = textwrap.indent(textwrap.dedent(script), "    ")
    text = f"{PRELUDE}\ntry:\n{body}\nexcept pyzorder.ZOrderError as error:\n    print(error)\n"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_jar_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyzorder import errors, session, versions

    monkeypatch.setattr(versions, "jar_path", lambda spark: tmp_path / f"pyzorder-{spark}.jar")
    (tmp_path / "pyzorder-other.jar").touch()
    with pytest.raises(errors.ZOrderError) as caught:
        session.jar()
    assert caught.value.condition == "ZORDER_JAR_MISSING"
    assert "pyzorder-other.jar" in str(caught.value)
    assert "pip install --force-reinstall" in str(caught.value)


def test_unsupported_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyspark

    from pyzorder import errors, session

    monkeypatch.setattr(pyspark, "__version__", "3.1.2")
    with pytest.raises(errors.ZOrderError, match=r"supports Spark 3.5, 4.0, .*this is Spark 3.1.2"):
        session.jar()


def test_pyspark_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyzorder import errors, session

    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(errors.ZOrderError, match="ZORDER_PYSPARK_MISSING"):
        session.jar()


def test_java_missing(tmp_path: Path) -> None:
    """If Java is missing, the error message says so. PySpark's own message would say only that the
    Java gateway exited."""
    said = run("pyzorder.configure(plain())", tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert "ZORDER_JAVA_MISSING" in said and "there is no java on PATH" in said
    (tmp_path / "spark-env.sh").touch()  # such a file may set JAVA_HOME
    script = "print(pyzorder.configure(plain())._options['spark.sql.extensions'])"
    environment = {"PATH": str(tmp_path), "JAVA_HOME": "", "SPARK_CONF_DIR": str(tmp_path)}
    assert "io.pyzorder.ZOrderExtensions" in run(script, tmp_path, **environment)


def test_keeps_what_is_set(tmp_path: Path) -> None:
    said = run(
        """
        builder = plain().config("spark.sql.extensions", "x.Y")
        builder = builder.config("spark.jars", "/a.jar,/b.jar")
        twice = pyzorder.configure(pyzorder.configure(builder))
        print(twice is builder, twice._options["spark.jars"].count("pyzorder-spark"))
        print(twice._options["spark.jars"].split("pyzorder")[0].split(",")[:2])
        print(twice._options["spark.sql.extensions"])
        builder.config("spark.sql.extensions", ",".join(["x.Y", *session.LATER]))
        print(pyzorder.configure(builder)._options["spark.sql.extensions"])
        """,
        tmp_path,
    )
    assert said.splitlines() == [
        "True 1",
        "['/a.jar', '/b.jar']",
        "x.Y,io.pyzorder.ZOrderExtensions",
        "x.Y,io.pyzorder.ZOrderExtensions,io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ]


def test_keeps_spark_defaults(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.sql.extensions   a.B\nspark.jars=/c.jar\n"
    )
    said = run(
        """
        options = pyzorder.configure(plain())._options
        print(options["spark.sql.extensions"])
        print(options["spark.jars"].split(",")[0])
        """,
        tmp_path,
        SPARK_CONF_DIR=str(tmp_path),
    )
    assert said.splitlines() == ["a.B,io.pyzorder.ZOrderExtensions", "/c.jar"]


def test_a_session_instead_of_its_builder(tmp_path: Path) -> None:
    said = run("pyzorder.configure(plain().getOrCreate())", tmp_path)
    assert "[ZORDER_NOT_A_BUILDER]" in said and "is a SparkSession, not" in said


def test_connect_builder(tmp_path: Path) -> None:
    said = run('pyzorder.configure(SparkSession.builder.remote("sc://localhost"))', tmp_path)
    assert "[ZORDER_CONNECT_CLIENT]" in said


def test_jars_overridden(tmp_path: Path) -> None:
    said = run(
        "pyzorder.configure(plain())",
        tmp_path,
        PYSPARK_SUBMIT_ARGS="--jars /x.jar pyspark-shell",
    )
    assert "[ZORDER_JARS_OVERRIDDEN]" in said


def test_running_without_pyzorder(tmp_path: Path) -> None:
    """Without pyzorder, each call fails with an error that says what to do. The calls run one
    after another in the same process, as in a notebook."""
    said = run(
        """
        spark = plain().getOrCreate()
        def attempt(what):
            try:
                what()
                print("fine")
            except pyzorder.ZOrderError as error:
                print(error)
        attempt(lambda: pyzorder.configure(plain()))
        attempt(lambda: pyzorder.ZOrderTable.forName(spark, "t"))
        attempt(lambda: pyzorder.explain(spark.range(3)))
        attempt(lambda: pyzorder.explain("SELECT 1"))
        spark.stop()
        attempt(lambda: pyzorder.configure(plain()))
        spark = plain().config("spark.sql.extensions", bridge.EXTENSION).getOrCreate()
        attempt(lambda: pyzorder.ZOrderTable.forName(spark, "t"))
        """,
        tmp_path,
    ).splitlines()
    conditions = [line.split("]")[0].strip("[") for line in said]
    assert conditions == [
        "ZORDER_SESSION_RUNNING",
        "ZORDER_NOT_CONFIGURED",
        "ZORDER_NOT_CONFIGURED",
        "ZORDER_NOT_A_DATAFRAME",
        "ZORDER_JVM_RUNNING",
        "ZORDER_EXTENSION_NOT_LOADED",
    ]
    assert "[ZORDER_SESSION_RUNNING]" in said[0]
    assert "restart the kernel" in said[4]


def test_versions_differ_and_configure_again(tmp_path: Path) -> None:
    said = run(
        """
        spark = pyzorder.configure(plain()).getOrCreate()
        found = bridge.session_manifest(spark)
        print(found["Implementation-Version"] == pyzorder.__version__)
        print(found["Pyzorder-Spark-Version"] == versions.minor(spark.version))
        def attempt(what):
            try:
                what()
                print("fine")
            except pyzorder.ZOrderError as error:
                print(error)
        attempt(lambda: pyzorder.configure(plain()).getOrCreate())
        spark.stop()
        attempt(lambda: pyzorder.configure(plain()))
        spark = pyzorder.configure(plain()).getOrCreate()
        attempt(lambda: pyzorder.ZOrderTable.forPath(spark, "t"))
        session.__version__ = "9.9.9"
        attempt(lambda: pyzorder.ZOrderTable.forName(spark, "t"))
        attempt(lambda: pyzorder.configure(plain()))
        """,
        tmp_path,
    ).splitlines()
    assert said[:5] == ["True", "True", "fine", "fine", "fine"]
    assert said[5].startswith("[ZORDER_VERSIONS_DIFFER] This is pyzorder 9.9.9 for Python")
    assert said[6] == said[5]


def test_jar_for_another_spark(tmp_path: Path) -> None:
    """The jar is passed directly to Spark, as with spark-sql --packages."""
    jar = tmp_path / "other.jar"
    ours = versions.jar_path(versions.minor(pyspark.__version__))
    with ZipFile(ours) as archive, ZipFile(jar, "w") as other:
        for name in archive.namelist():
            content = archive.read(name)
            if name == "META-INF/MANIFEST.MF":
                content = re.sub(rb"(Spark-Version: )\S+", rb"\g<1>9.9", content)
            other.writestr(name, content)
    said = run(
        f"""
        builder = plain().config("spark.jars", {str(jar)!r})
        builder = builder.config("spark.sql.extensions", bridge.EXTENSION)
        try:
            builder.getOrCreate()
        except Exception as error:
            print(error)
        """,
        tmp_path,
    )
    assert "[ZORDER_JAR_FOR_OTHER_SPARK]" in said
    assert "is built for Spark 9.9, but this is Spark" in said
