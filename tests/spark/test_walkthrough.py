"""sql/walkthrough.sql runs in a session, in beeline, and in `spark-sql` from a Spark distribution
that was not installed with pip."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyzorder import session
from tests.spark.test_examples import statements
from tests.support.documents import ROOT
from tests.support.processes.servers import BIN
from tests.support.sessions import SUBMIT_OPTIONS

WALKTHROUGH = ROOT / "sql" / "walkthrough.sql"

#: The sum of all amounts for customer 7. The walkthrough later inserts a row with amount 1.
AMOUNT = sum(range(7, 200_000, 1000))

EXTENSION = f"spark.sql.extensions={session.EXTENSION}"


def spark_home(folder: Path, defaults: str) -> Path:
    """Creates a Spark home that looks like an unpacked distribution. `defaults` is the content of
    its spark-defaults.conf."""
    home = folder / "spark"
    (home / "conf").mkdir(parents=True)
    for part in ("bin", "jars"):
        (home / part).symlink_to(BIN.parent / part)
    (home / "conf" / "spark-defaults.conf").write_text(defaults)
    return home


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Runs a command in a folder, without the environment variables of another Spark installation.
    Returns its output."""
    ours = ("SPARK_CONF_DIR", "SPARK_HOME", "PYSPARK_PYTHON", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if key not in ours}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL, timeout=300,
        env={**kept, "SPARK_SUBMIT_OPTS": SUBMIT_OPTIONS, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def check(printed: str) -> None:
    """Asserts that the walkthrough prints the right amounts and opens fewer files after
    OPTIMIZE."""
    words = re.findall(r"\w+", printed)
    assert (words.count(str(AMOUNT)), words.count(str(AMOUNT + 1))) == (2, 1), printed
    plans = re.findall(r"(\d+) of (\d+) files selected, \d+ skipped, (\d+) unindexed", printed)
    (_, *before), *after = [tuple(map(int, counts)) for counts in plans]
    assert before == [20, 20] and len(after) == 2
    for selected, total, unindexed in after:
        assert 1 <= selected <= total // 2 and unindexed == 0


def test_statement_by_statement(spark: SparkSession) -> None:
    text = WALKTHROUGH.read_text(encoding="utf-8")
    check("\n".join(str(row) for one in statements(text) for row in spark.sql(one).collect()))


@pytest.mark.bi
@pytest.mark.parametrize("way", ["spark-defaults.conf", "--jars"])
def test_spark_sql(tmp_path: Path, way: str) -> None:
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
    }
    options = ["-f", str(WALKTHROUGH)]
    if way == "--jars":
        options = ["--jars", str(session.jar()), "--conf", EXTENSION, *options]
    else:
        settings |= {"spark.jars": str(session.jar()), "spark.sql.extensions": session.EXTENSION}
    defaults = "\n".join(f"{key}  {value}" for key, value in settings.items())
    home = spark_home(tmp_path, defaults)
    check(run([str(home / "bin" / "spark-sql"), *options], tmp_path, SPARK_HOME=str(home)))


@pytest.mark.bi
def test_beeline(thrift_server: int, tmp_path: Path) -> None:
    url = f"jdbc:hive2://127.0.0.1:{thrift_server}/default"
    check(run([str(BIN / "beeline"), "-u", url, "-n", "me", "-f", str(WALKTHROUGH)], tmp_path))
