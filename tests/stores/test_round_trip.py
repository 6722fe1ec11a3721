"""Every statement works on every store."""

from __future__ import annotations

import pytest

from tests.stores.tables import ALL, Table
from tests.support import scans
from tests.support.folders import Folder

pytestmark = pytest.mark.stores


@pytest.mark.parametrize(("provider", "partitioned"), [("parquet", True), ("orc", False)])
def test_round_trip(folder: Folder, provider: str, partitioned: bool) -> None:
    table = Table(folder, provider, partitioned)
    created, alone = table.files, 2 if partitioned else 1  # id 7 may be in one file per partition
    table.run("CREATE SKIPPING INDEX ON {}")
    assert table.unindexed() == 0 and table.ids() == ALL
    assert table.opened() == {name.rpartition("/")[2] for name in created}

    table.optimize()
    optimized = folder.data()
    assert not set(optimized) & set(created)
    assert table.ids() == table.plain_ids() == ALL
    assert table.unindexed() == 0 and len(table.opened()) == alone
    assert table.optimize()["numFilesRemoved"] == 0  # OPTIMIZE recognizes its own files
    assert len(folder.pyzorder_files(".retired")) == len(created)
    assert folder.pyzorder_files(".staged") == []

    table.append(40, 44)
    appended = set(folder.data()) - set(optimized)
    assert table.ids() == list(range(44))
    assert table.unindexed() == 0 and len(table.opened()) == alone

    table.run("RESTORE {} TO BEFORE OPTIMIZE")
    assert set(folder.data()) == set(created) | appended
    assert table.ids() == table.plain_ids() == list(range(44))
    assert table.unindexed() == 0

    table.optimize()
    table.run("RESTORE {} TO BEFORE OPTIMIZE")  # files have been moved away, back, and away again
    assert set(folder.data()) == set(created) | appended

    table.vacuum()
    assert folder.pyzorder_files(".retired") == [] and table.ids() == list(range(44))
    table.optimize()
    table.vacuum()

    moved = folder.data()[0]
    folder.copy(moved, moved.replace("part-", "other-"))  # a file from another engine
    folder.remove(moved)
    with scans.settings(folder.spark, spark__sql__zorder__index__trusted="false"):
        assert table.unindexed() == 1 and table.ids() == list(range(44))
    table.run("REFRESH SKIPPING INDEX ON {}")
    assert table.unindexed() == 0 and table.ids() == list(range(44))

    table.run("DROP SKIPPING INDEX ON {}")
    assert table.ids() == list(range(44))


def test_catalog_table(folder: Folder) -> None:
    """INSERT INTO and INSERT OVERWRITE … PARTITION work on a catalog table."""
    spark = folder.spark
    spark.sql(
        "CREATE TABLE on_a_store (id BIGINT, day BIGINT) USING parquet PARTITIONED BY (day) "
        f"LOCATION '{folder.url}'"
    )
    try:
        spark.sql("INSERT INTO on_a_store SELECT id, id % 2 FROM range(0, 40, 1, 4)")
        spark.sql("OPTIMIZE on_a_store ZORDER BY (id)")
        spark.sql("INSERT INTO on_a_store VALUES (40, 0)")
        spark.sql("INSERT OVERWRITE on_a_store PARTITION (day = 1) SELECT 1")
        expected = [*sorted([1, *range(0, 40, 2)]), 40]
        rows = spark.table("on_a_store")
        assert sorted(row["id"] for row in rows.collect()) == expected
        assert len(scans.opened(rows.where("day = 1 AND id = 1"))) == 1
        spark.sql("OPTIMIZE on_a_store WHERE day = 0 ZORDER BY (id)")
        rows = spark.table("on_a_store")
        assert sorted(row["id"] for row in rows.collect()) == expected
    finally:
        spark.sql("DROP TABLE on_a_store")
