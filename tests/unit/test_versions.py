"""The names of jars contain the versions of Spark and pyzorder."""

from __future__ import annotations

import re

import pytest

from pyzorder import __version__, versions


@pytest.mark.parametrize(
    ("version", "minor"),
    [("4.3.0", "4.3"), ("4.3.0.dev1", "4.3"), ("3.5.6-amzn-1", "3.5"), ("4.0", "4.0")],
)
def test_minor(version: str, minor: str) -> None:
    assert versions.minor(version) == minor


def test_supported_are_in_order() -> None:
    found = versions.supported()
    assert found == sorted(found, key=lambda spark: [int(part) for part in spark.split(".")])


def test_jars_have_names_of_their_own() -> None:
    names = [versions.jar_path(spark).name for spark in versions.supported()]
    assert len(set(names)) == len(names)
    for spark, name in zip(versions.supported(), names, strict=True):
        assert re.fullmatch(rf"pyzorder-spark-{spark}_2\.1[23]-{re.escape(__version__)}\.jar", name)


def test_no_jar_for_other_sparks() -> None:
    with pytest.raises(KeyError):
        versions.jar_path("2.4")
