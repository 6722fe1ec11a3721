"""Jars are built for each Spark version, and a wheel contains the right jars."""

from __future__ import annotations

import re
from pathlib import Path

import backend
import build
import environment
import pytest

SPARKS = build.spark_versions().sections()


def write_jar(spark: str, folder: Path, inputs: str) -> Path:
    """Writes a jar that has no classes and records the given build inputs."""
    classes, jar = folder / "classes", folder / build.jar_name(spark)
    classes.mkdir(exist_ok=True)
    build.write_jar(spark, inputs, classes, jar)
    return jar


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(backend, "JARS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("spark", SPARKS)
def test_sources_exist(spark: str) -> None:
    folders = build.spark_versions()[spark]["sources"].split()
    assert all((build.SOURCES / folder).is_dir() for folder in folders)
    assert build.spark_versions()[spark]["pyspark"].startswith(f"{spark}.")


@pytest.mark.parametrize("spark", SPARKS)
def test_clients_are_no_newer_than_their_servers(spark: str) -> None:
    if spark == "3.5":
        with pytest.raises(SystemExit, match="no separate Spark Connect client package"):
            environment.pyspark(spark, client=True)
        return
    client = environment.pyspark(spark, client=True).removeprefix("pyspark-client==")
    server = environment.pyspark(spark, client=False).removeprefix("pyspark==")
    assert [int(n) for n in client.split(".")] <= [int(n) for n in server.split(".")]


def test_a_wheel_takes_in_what_is_made_of_these_sources(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = [write_jar(spark, jars, build.digest(spark)) for spark in SPARKS[:-1]]
    write_jar(SPARKS[-1], jars, "f" * 40)
    (jars / "pyzorder-spark-4.3_2.13-0.0.1.jar").touch()
    monkeypatch.setenv("PYZORDER_SPARK", " ".join(SPARKS[:-1]))
    assert backend.to_compile() == [] == [r for r in backend.build_requires() if "pyspark" in r]
    backend.build_jars()
    assert sorted(jars.glob("*.jar")) == sorted(kept)


def test_what_cannot_be_compiled_here_is_an_error(
    jars: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = next(spark for spark in SPARKS if spark != backend.installed_spark())
    monkeypatch.setenv("PYZORDER_SPARK", other)
    with pytest.raises(SystemExit, match=f"make jar SPARK={other}"):
        backend.build_jars()
    assert f"pyspark=={build.spark_versions()[other]['pyspark']}" in backend.build_requires()


@pytest.mark.parametrize("named", ["2.4", "3.5,9.9"])
def test_an_unknown_spark_is_an_error(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("PYZORDER_SPARK", named)
    with pytest.raises(SystemExit, match="pyzorder is built for Spark 3.5, 4.0"):
        backend.wanted_sparks()


def test_ci_compiles_every_spark() -> None:
    named = set(re.findall(r"\b\d\.\d\b", (build.ROOT / ".ci" / "run").read_text()))
    assert named | {SPARKS[-1]} == set(SPARKS)  # the test suite runs on the newest version
    workflow = (build.ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r'"(\d\.\d)"', workflow) == SPARKS
