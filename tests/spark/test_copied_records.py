"""Genuine records from one table's journal have no effect in the journal of another table.

An attacker can read the journal of the table `victim`, but can write only to the folder of the
table `thief`. The attacker copies records from the journal of `victim` to the journal of `thief`.
Both tables are in the same parent folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_forged_records import COMMITTED, DEAD, life_of, put, tree
from tests.support import scans
from tests.support.processes.journal_driver import killed
from tests.support.sampled import crash

#: (the record to copy, the clause that partitions the victim, the fail point at which the victim's
#: OPTIMIZE is killed)
RECORDS = {
    "partitions, before the switch": ("partitions", "PARTITIONED BY (day)", "before-switch"),
    "partitions, being filled": ("partitions", "PARTITIONED BY (day)", "switch-filled"),
    "the table, before the switch": ("switch", "", "before-switch"),
    "the table, being filled": ("switch", "", "switch-filled"),
}


@pytest.mark.parametrize("case", crash(RECORDS, "partitions, being filled"))
@pytest.mark.parametrize("outcome", crash(["none", "COMMIT"], "none"))
def test_copied(spark: SparkSession, tmp_path: Path, case: str, outcome: str) -> None:
    kind, partitioned, point = RECORDS[case]
    victim, thief = tmp_path / "victim", tmp_path / "thief"
    killed(
        victim,
        point,
        f"CREATE TABLE victim (id BIGINT, day INT) USING parquet {partitioned} LOCATION '{victim}'"
        " TBLPROPERTIES ('zorder.publish.method' = 'location');"
        " INSERT INTO victim SELECT id, int(id % 2) FROM range(20);"
        " OPTIMIZE victim ZORDER BY (id)",
    )
    spark.range(5).write.parquet(str(thief))
    spark.sql(f"OPTIMIZE '{thief}' ZORDER BY (id)").collect()
    filled = list(tmp_path.glob("victim-zorder-*"))
    before = tree(victim, *filled)
    assert filled

    journal = thief / "_zorder" / "_journal"
    (record,) = (victim / "_zorder" / "_journal").glob(f"_*.{kind}")
    shutil.copy(record, journal / f"_2.{kind}")
    (thief / "_zorder" / "_incarnation").write_text(life_of(victim))
    files: dict[str, list[str]] = {"retire": [], "add": [], "folders": []}
    more = {} if outcome == "none" else {"outcome": COMMITTED}
    put(journal, 2, life_of(victim), prepare=DEAD, retire=files, **more)
    with scans.settings(spark, spark__sql__zorder__journal__lease="1s"):
        try:
            spark.sql(f"VACUUM '{thief}'").collect()
        except PySparkException as failure:
            assert "[ZORDER_" in str(failure)
    assert tree(victim, *filled) == before
