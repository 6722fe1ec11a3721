"""jvm/pom.xml and jvm/build.py agree with pyzorder/spark_versions.ini and build the same jar."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import build
import pytest

NAMES = {"m": "http://maven.apache.org/POM/4.0.0"}
POM = ElementTree.parse(build.ROOT / "jvm" / "pom.xml").getroot()
SPARKS = build.spark_versions().sections()


def profile(spark: str) -> dict[str, str]:
    """The properties in the profile for a Spark version."""
    found = POM.find(f"m:profiles/m:profile[m:id='spark-{spark}']/m:properties", NAMES)
    assert found is not None, f"no profile spark-{spark}"
    both = [*POM.findall("m:properties/*", NAMES), *found]
    return {one.tag.partition("}")[2]: one.text or "" for one in both}


def test_a_profile_for_each_spark_and_the_newest_is_the_default() -> None:
    profiles = POM.findall("m:profiles/m:profile", NAMES)
    named = [one.findtext("m:id", "", NAMES) for one in profiles]
    assert [name for name in named if name != "release"] == [f"spark-{spark}" for spark in SPARKS]
    default = [one for one in profiles if one.find("m:activation", NAMES) is not None]
    assert [one.findtext("m:id", "", NAMES) for one in default] == [f"spark-{SPARKS[-1]}"]


@pytest.mark.parametrize("spark", SPARKS)
def test_versions(spark: str) -> None:
    section, pom = build.spark_versions()[spark], profile(spark)
    assert pom["spark.minor"] == spark
    assert pom["spark.version"] == section.get("maven", section["pyspark"])
    assert pom["spark.version"].startswith(f"{spark}.")
    assert pom["scala.binary"] == section["scala"]
    assert pom["scala.version"].startswith(f"{section['scala']}.")
    own = pom["spark.group"] == "io.pyzorder.pyspark"
    assert own == ("maven" not in section)


@pytest.mark.parametrize("spark", SPARKS)
def test_sources(spark: str) -> None:
    pom = profile(spark)
    folders = {"scala", pom["sources.shim"], pom["sources.parser"]}
    assert folders == set(build.spark_versions()[spark]["sources"].split())


def test_resources() -> None:
    """Both builds copy the same files of the Python package to the same folders in the jar."""
    found = {}
    for resource in POM.findall("m:build/m:resources/m:resource", NAMES):
        folder = resource.findtext("m:directory", "", NAMES).replace("${project.basedir}/..", "")
        for name in resource.findall("m:includes/m:include", NAMES):
            file = build.ROOT / folder.strip("/") / (name.text or "")
            found[file] = resource.findtext("m:targetPath", "", NAMES)
    assert found == build.RESOURCES


@pytest.mark.parametrize("spark", SPARKS)
def test_the_oldest_java(spark: str) -> None:
    option = (
        "-target:jvm-1.8" if build.spark_versions()[spark]["scala"] == "2.12" else "-release:17"
    )
    assert profile(spark)["java.options"] == option


@pytest.mark.parametrize("spark", SPARKS)
def test_the_jar_has_one_name(spark: str) -> None:
    name = POM.findtext("m:artifactId", "", NAMES)
    for key, value in profile(spark).items():
        name = name.replace(f"${{{key}}}", value)
    assert f"{name}-{POM.findtext('m:version', '', NAMES)}.jar" == build.jar_name(spark)


def test_the_formatter_has_one_version() -> None:
    tool = ElementTree.parse(build.ROOT / "jvm" / "scalafmt.xml").getroot()
    version = tool.findtext("m:dependencies/m:dependency/m:version", "", NAMES)
    written = re.search(r'^version = "(.+)"', (build.ROOT / ".scalafmt.conf").read_text(), re.M)
    assert written is not None and written.group(1) == version


def test_nothing_of_tests_or_benchmarks_is_in_the_jar() -> None:
    names = {file.name for spark in SPARKS for file in build.source_files(spark)}
    assert not [name for name in names if re.search("(Benchmark|Suite|Test)", name)]
