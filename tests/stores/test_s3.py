"""Tests cases that are specific to S3: lost responses, interrupted renames, conflicting conditional
puts, and paginated listings."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from tests.stores import s3_server
from tests.stores.tables import ALL, Table
from tests.support import scans
from tests.support.folders import Folder
from tests.support.processes.journal_driver import killed, ran

pytestmark = pytest.mark.stores


@pytest.fixture(autouse=True)
def on_s3(folder: Folder) -> None:
    if folder.scheme != "s3a":
        pytest.skip("needs S3")


#: (how one request fails, a pattern for the object's name)
FAULTS = [
    *((s3_server.LOSE, name) for name in ("prepare", "retire", "outcome", "done", "_v0.*json")),
    (s3_server.LOSE, "_incarnation"),
    (s3_server.LOSE, r"_zorder\.1"),
    (s3_server.CONFLICT, "prepare"),
    (s3_server.CONFLICT, "outcome"),
    (s3_server.CONFLICT, "_v0.*json"),
]


@pytest.mark.parametrize(("how", "record"), FAULTS)
def test_a_put_that_fails(folder: Folder, how: str, record: str) -> None:
    """OPTIMIZE succeeds even if a put conflicts with another put or the response to a put is lost.
    If the response is lost, S3A repeats the put, although the first put succeeded."""
    table = Table(folder)
    s3_server.fail(folder.conf.get("fs.s3a.endpoint"), how, f"PUT .*{record}$")
    assert table.optimize()["numFilesAdded"] > 0
    assert table.ids() == table.plain_ids() == ALL
    assert table.unindexed() == 0
    assert len(folder.pyzorder_files(".prepare")) == 1  # the first attempt took the lock
    table.run("RESTORE {} TO BEFORE OPTIMIZE")
    assert folder.data() == table.files


#: (the point at which OPTIMIZE is killed, which kind of file has been copied but not yet deleted,
#: the path of the copy)
HALF_MOVES = [
    ("after-retire", "part-", "_zorder/_retired/_1/_{}.retired"),
    ("after-commit", ".staged", "{}"),
]


@pytest.mark.parametrize(("point", "files", "to"), HALF_MOVES)
def test_a_rename_is_killed_between_copy_and_deletion(
    folder: Folder, point: str, files: str, to: str
) -> None:
    table = Table(folder)
    table.run("CREATE SKIPPING INDEX ON {}")
    killed(folder.url, point, f"OPTIMIZE {table.name} FULL ZORDER BY (id)")
    copied = (folder.pyzorder_files(files) if files == ".staged" else folder.data())[0]
    name = copied.rpartition("/_")[2].removesuffix(".staged") if files == ".staged" else copied
    folder.copy(copied, to.format(name))
    assert table.ids() == ALL
    table.run("VACUUM {}")
    assert table.ids() == table.plain_ids() == ALL
    assert folder.pyzorder_files(".staged") == []
    assert table.unindexed() == 0
    assert set(folder.data()) & set(table.files) == (
        set(table.files) if point == "after-retire" else set()
    )


def test_refused_without_conditional_puts(folder: Folder) -> None:
    table = Table(folder)
    off = {"spark__hadoop__fs__s3a__create__conditional__enabled": "false"}
    disabled = {
        "fs__s3a__create__conditional__enabled": "false",
        "fs__s3a__impl__disable__cache": "true",
    }
    for statement in ("OPTIMIZE {} ZORDER BY (id)", "CREATE SKIPPING INDEX ON {}"):
        with (
            scans.settings(folder.spark, **off, **disabled),
            pytest.raises(PySparkException, match="ZORDER_UNSUPPORTED_STORE"),
        ):
            table.run(statement)
        assert folder.data() == table.files and table.ids() == ALL
        assert folder.pyzorder_files() == []


def parquet(numbers: list[int]) -> bytes:
    """The bytes of a Parquet file as other engines would write it."""
    content = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(numbers, pa.int64())}), content)
    return content.getvalue()


def put(folder: Folder, name: str, content: bytes) -> None:
    """Writes a new file with a single request."""
    key = folder.url.removeprefix("s3a://")
    url = f"{folder.conf.get('fs.s3a.endpoint')}/{key}/{name}"
    headers = {"Content-Type": "application/octet-stream"}
    urlopen(Request(url, content, headers, method="PUT")).close()


def listings(folder: Folder) -> list[str]:
    """Of the requests since the last call, those that list the table's folder itself."""
    said = s3_server.requests(folder.conf.get("fs.s3a.endpoint"))
    return [one for one in said if re.search(r"list-type=2.*prefix=[^&]*%2Ft%2F(&|$)", one)]


def test_a_folder_of_several_pages(folder: Folder) -> None:
    """The first query of a session lists the table, and every query checks that skipped files have
    not changed. For both, it lists ranges of names, with one request per range. If a query is
    planned without a listing, the table's folder is not listed at all."""
    spark, files = folder.spark, 2300
    put(folder, "", b"")  # as S3A does when it creates the folder
    for number in range(files):
        content = parquet([0, 9] if number % 1000 else [5, 15])
        put(folder, f"part-{number:04}.parquet", content)
    spark.sql(f"CREATE TABLE paged (id BIGINT) USING parquet LOCATION '{folder.url}'")
    try:
        spark.sql("CREATE SKIPPING INDEX ON paged")
        lookup = "SELECT count(*) FROM paged WHERE id = 15"
        assert spark.sql(lookup).collect() == [(3,)]
        listings(folder)
        assert spark.sql(lookup).collect() == [(3,)]
        pages = listings(folder)
        assert len(pages) == 3
        assert sum("start-after=" in page for page in pages) == 2
        folder.write("part-1500.parquet", parquet([15]))
        assert spark.sql(lookup).collect() == [(4,)]
        spark.sql("REFRESH SKIPPING INDEX ON paged")
        listings(folder)
        fresh = spark.newSession()
        fresh.conf.set("spark.sql.zorder.index.maxStaleness", "1h")
        for _ in range(2):
            assert fresh.sql(lookup).collect() == [(4,)]
        assert listings(folder) == []
        for name in ("_a", "a.parquet", "part-1500a.parquet", "z.parquet"):
            put(folder, name, parquet([15]))
        listings(folder)
        assert spark.newSession().sql(lookup).collect() == [(7,)]
        pages = listings(folder)
        assert len(pages) == 2 * 3
        assert sum("start-after=" in page for page in pages) == 2 * 2
        put(folder, "z/z.parquet", parquet([15]))  # Spark lists all levels
        assert spark.newSession().sql(lookup).collect() == [(7,)]
    finally:
        spark.sql("DROP TABLE paged")


def test_a_table_that_is_a_bucket(folder: Folder) -> None:
    """The root of a bucket has an empty key."""
    spark, endpoint = folder.spark, folder.conf.get("fs.s3a.endpoint")
    urlopen(Request(f"{endpoint}/whole", method="PUT")).close()
    for number in range(950):
        content, url = parquet([number]), f"{endpoint}/whole/part-{number:04}.parquet"
        headers = {"Content-Type": "application/octet-stream"}
        urlopen(Request(url, content, headers, method="PUT")).close()
    spark.sql("CREATE TABLE bucket (id BIGINT) USING parquet LOCATION 's3a://whole/'")
    try:
        spark.sql("CREATE SKIPPING INDEX ON bucket")
        s3_server.requests(endpoint)
        for query in ("SELECT sum(1) FROM bucket", "SELECT count(*) FROM bucket WHERE id < 950"):
            assert spark.newSession().sql(query).collect() == [(950,)]
        said = s3_server.requests(endpoint)
        assert [one for one in said if "start-after=part-0899.parquet" in one], said
    finally:
        spark.sql("DROP TABLE bucket")


def test_planning_a_join(folder: Folder) -> None:
    """Key ranges are found without further requests, however many tables are joined."""
    spark, key = folder.spark, "spark.sql.zorder.join.maxKeys"
    for number in range(4):
        put(folder, f"part-{number}.parquet", parquet([number]))
    spark.sql(f"CREATE TABLE joined (id BIGINT) USING parquet LOCATION '{folder.url}'")
    try:
        spark.sql("CREATE SKIPPING INDEX ON joined")
        others = " ".join(
            f"JOIN joined t{i} ON t0.id = t{i}.id AND t{i}.id <> {i}" for i in range(1, 7)
        )
        query = f"SELECT /*+ MERGE(t0) */ t0.id FROM joined t0 {others}"
        requests = []
        for keys in ("0", "0", "10000"):
            spark.conf.set(key, keys)
            s3_server.requests(folder.conf.get("fs.s3a.endpoint"))
            spark.sql(query)._jdf.queryExecution().executedPlan()
            requests.append(len(s3_server.requests(folder.conf.get("fs.s3a.endpoint"))))
        assert requests[2] <= requests[1]
    finally:
        spark.conf.unset(key)
        spark.sql("DROP TABLE joined")


METADATA = ["CREATE SKIPPING INDEX ON few", "OPTIMIZE few ZORDER BY (id)"]

#: Queries that pyzorder plans in different ways.
FEW = [
    "SELECT id FROM few WHERE id = 7",
    "SELECT count(*), max(id) FROM few WHERE id BETWEEN 3 AND 11",
    "SELECT count(*) FROM few WHERE id > 20 AND (id < 30 OR id IS NULL)",
    "SELECT id FROM few ORDER BY id LIMIT 3",
    "SELECT count(*) FROM few a JOIN few b ON a.id = b.id WHERE a.id < 5",
]


@pytest.mark.parametrize("statement", METADATA)
def test_requests_for_metadata(folder: Folder, statement: str) -> None:
    """The journal and the index are not listed. Three requests show that nothing newer exists, no
    matter how many rules need them."""
    spark, endpoint = folder.spark, folder.conf.get("fs.s3a.endpoint")
    for number in range(4):
        put(folder, f"part-{number}.parquet", parquet(list(range(10 * number, 10 * number + 10))))
    spark.sql(f"CREATE TABLE few (id BIGINT) USING parquet LOCATION '{folder.url}'")
    try:
        spark.sql(statement)
        for staleness in ("0s", "1h"):
            with scans.settings(spark, spark__sql__zorder__index__maxStaleness=staleness):
                for query in FEW:
                    spark.sql(query).collect()
                    s3_server.requests(endpoint)
                    spark.sql(query).collect()
                    said = s3_server.requests(endpoint)
                    # A thread of OPTIMIZE looks for leftovers of its run, a few seconds later.
                    own = [one for one in said if "_zorder" in one and "/_1." not in one]
                    assert not [one for one in own if "list-type=2" in one], said
                    assert len(own) <= 3, "\n".join([staleness, query, *said])
                    assert staleness == "0s" or not [one for one in said if "list-type=2" in one]
    finally:
        spark.sql("DROP TABLE few")


#: Prints the results of queries in a fresh session, and then the requests that they needed.
FRESH = """
import sys
from tests.stores import s3_server
from tests.support import sessions

endpoint, url, *queries = sys.argv[1:]
spark = sessions.session(memory="600m", spark__sql__zorder__index__maxStaleness="1h")
spark.sql(f"CREATE TABLE few (id BIGINT) USING parquet LOCATION '{url}'")
s3_server.requests(endpoint)
for query in queries:
    print(*map(tuple, spark.sql(query).collect()))
print(*s3_server.requests(endpoint), sep="\\n")
"""


def fresh(folder: Folder, *queries: str) -> list[str]:
    """The lines that FRESH prints."""
    arguments = [folder.conf.get("fs.s3a.endpoint"), folder.url, *queries]
    said = subprocess.run(
        [sys.executable, "-c", FRESH, *arguments],
        check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    return said.stdout.splitlines()


@pytest.mark.parametrize("statement", METADATA)
def test_a_fresh_session_lists_nothing(folder: Folder, statement: str) -> None:
    """If a query may be planned without listing the table, even a session's first query lists
    nothing. If the file that makes this possible is missing, outdated or forged, pyzorder's own
    folders are listed, and the query returns the same rows."""
    spark, newest = folder.spark, "_zorder/_index/_newest.json"
    for number in range(4):
        put(folder, f"part-{number}.parquet", parquet(list(range(10 * number, 10 * number + 10))))
    spark.sql(f"CREATE TABLE few (id BIGINT) USING parquet LOCATION '{folder.url}'")
    try:
        spark.sql(statement)
        found, *requests = fresh(folder, "SELECT id FROM few WHERE id = 7")
        assert found == "(7,)"
        assert not [one for one in requests if "list-type=2" in one], "\n".join(requests)
        old = folder.read(newest)
        for number in range(12):  # the first versions of the index are deleted
            spark.sql(f"INSERT INTO few VALUES ({100 + number})")
        new = folder.read(newest)
        for said in (new, old, None, b"[{}]", new.replace(b'"size"', b'"length"')):
            if said is None:
                folder.remove(newest)
            else:
                folder.write(newest, said)
            found, *requests = fresh(folder, "SELECT count(*) FROM few WHERE id > 99")
            assert found == "(12,)", said
            listings = [one for one in requests if "list-type=2" in one]
            assert bool(listings) == (said != new), requests
            assert all("_zorder" in one for one in listings), requests
    finally:
        spark.sql("DROP TABLE few")


#: (what another process does with table few, the ids below 8 that the table then contains)
OTHERS = [
    (["INSERT INTO few VALUES (4)"], [1, 2, 3, 4]),
    (["INSERT INTO few VALUES (4)"] * 13, [1, 2, 3, *[4] * 13]),
    (["OPTIMIZE few FULL ZORDER BY (id)"], [1, 2, 3]),
    (["INSERT INTO few VALUES (4)", "OPTIMIZE few FULL ZORDER BY (id)"], [1, 2, 3, 4]),
    (["INSERT OVERWRITE few VALUES (5)"], [5]),
    (["DROP SKIPPING INDEX ON few", "INSERT INTO few VALUES (4)"], [1, 2, 3, 4]),
    (
        [
            "DROP SKIPPING INDEX ON few",
            "INSERT INTO few VALUES (4)",
            "CREATE SKIPPING INDEX ON few",
        ],
        [1, 2, 3, 4],
    ),
    (["VACUUM few", "REFRESH SKIPPING INDEX ON few"], [1, 2, 3]),
]


@pytest.mark.parametrize("staleness", ["1h", "0s"])
@pytest.mark.parametrize(("statements", "ids"), OTHERS)
def test_other_processes_are_seen_at_once(
    folder: Folder, statements: list[str], ids: list[int], staleness: str
) -> None:
    """A session that does not list the index notices everything that other processes with pyzorder
    do."""
    spark, table = folder.spark, "CREATE TABLE few (id BIGINT) USING parquet LOCATION"
    for number in range(4):
        put(folder, f"part-{number}.parquet", parquet([number, number + 10]))
    spark.sql(f"{table} '{folder.url}'")
    lookup = "SELECT id FROM few WHERE id BETWEEN 1 AND 7 ORDER BY id"
    try:
        spark.sql("OPTIMIZE few ZORDER BY (id)")
        with scans.settings(spark, spark__sql__zorder__index__maxStaleness=staleness):
            assert spark.sql(lookup).collect() == [(1,), (2,), (3,)]
            ran(folder.url, "; ".join([f"{table} '{folder.url}'", *statements]))
            assert spark.sql(lookup).collect() == [(one,) for one in ids]
            spark.sql("REFRESH TABLE few")
            assert spark.sql(lookup).collect() == [(one,) for one in ids]
    finally:
        spark.sql("DROP TABLE few")


@pytest.mark.parametrize("point", ["after-retire", "after-commit", "after-done"])
def test_an_optimize_is_killed_while_a_session_lists_nothing(folder: Folder, point: str) -> None:
    spark, table = folder.spark, "CREATE TABLE few (id BIGINT) USING parquet LOCATION"
    for number in range(4):
        put(folder, f"part-{number}.parquet", parquet([number, number + 10]))
    spark.sql(f"{table} '{folder.url}'")
    lookup = "SELECT id FROM few WHERE id BETWEEN 1 AND 12 ORDER BY id"
    rows = [(one,) for one in (1, 2, 3, 10, 11, 12)]
    try:
        spark.sql("CREATE SKIPPING INDEX ON few")
        with scans.settings(spark, spark__sql__zorder__index__maxStaleness="1h"):
            assert spark.sql(lookup).collect() == rows
            killed(folder.url, point, f"OPTIMIZE parquet.`{folder.url}` FULL ZORDER BY (id)")
            assert spark.sql(lookup).collect() == rows
            spark.sql("OPTIMIZE few FULL ZORDER BY (id)")  # ends the run
            assert spark.sql(lookup).collect() == rows
    finally:
        spark.sql("DROP TABLE few")
