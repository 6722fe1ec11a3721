"""Makes PySpark's jars available to jvm/pom.xml, for Spark versions that are not on Maven Central.

    python jvm/spark_repository.py [--out build/spark-repository]

Writes a Maven repository of links to the jars. Its artifact io.pyzorder.pyspark:spark-sql_2.13
depends on all other jars. The artifacts have pyzorder's group, so they cannot be confused with
Spark's artifacts.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import build

GROUP = "io.pyzorder.pyspark"

#: Name prefixes of jars that neither the compiler nor the tests need. Many of these jars are large.
LEFT_OUT = ("aws", "datanucleus", "hive-exec", "hive-metastore", "kubernetes", "rocksdbjni",
            "spark-graphx", "spark-hive", "spark-kubernetes", "spark-mllib",
            "spark-yarn")  # fmt: skip


def pom(artifact: str, version: str, needs: list[str]) -> str:
    """The text of a POM without a parent."""
    dependencies = "".join(
        f"<dependency><groupId>{GROUP}</groupId><artifactId>{need}</artifactId>"
        f"<version>{version}</version></dependency>\n"
        for need in needs
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        f"<groupId>{GROUP}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>\n<dependencies>\n{dependencies}</dependencies></project>\n"
    )


def offer(out: Path, jar: Path, artifact: str, version: str, needs: list[str]) -> None:
    """Links a jar into the repository and writes its POM."""
    folder = out.joinpath(*GROUP.split("."), artifact, version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{artifact}-{version}.pom").write_text(pom(artifact, version, needs))
    link = folder / f"{artifact}-{version}.jar"
    link.unlink(missing_ok=True)
    link.symlink_to(jar)


def write(home: Path, scala: str, version: str, out: Path) -> None:
    """Writes the repository with the jars of the PySpark in `home`."""
    main = f"spark-sql_{scala}"
    jars = [j for j in sorted((home / "jars").glob("*.jar")) if not j.name.startswith(LEFT_OUT)]
    others = [jar for jar in jars if not jar.name.startswith(f"{main}-")]
    for jar in others:
        offer(out, jar, jar.stem, version, [])
    (sql,) = set(jars) - set(others)
    offer(out, sql, main, version, [jar.stem for jar in others])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=build.ROOT / "build" / "spark-repository")
    parser.add_argument(
        "--needed",
        metavar="SPARK",
        help="print yes if this Spark version needs the repository, and no otherwise",
    )
    arguments = parser.parse_args()
    if arguments.needed:
        section = build.spark_versions()[build.supported(arguments.needed)]
        print("no" if "maven" in section else "yes")
        return
    spark, home = build.installed_spark()
    section = build.spark_versions()[spark]
    write(home, section["scala"], section["pyspark"], arguments.out)


if __name__ == "__main__":
    main()
