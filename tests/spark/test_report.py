"""Layouts, pictures and reports of real tables agree with plain Spark and with past runs."""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import pyzorder
from pyzorder import ZOrderError, history, layout, plot, report
from pyzorder.pictures import curves, drawing
from tests.support.scans import plain, truth
from tests.support.tables import aim_at, metrics, target_size

ODD = "<script>alert(1)</script>"

# (name, SQL that computes the values from `id`, SQL that converts a bound to the form that layouts
# use). `id` counts from 0 to 599.
COLUMNS = [
    ("a", "cast(id * 7919 % 600 AS int)", "{}"),
    ("b", "id * 104729 % 600", "{}"),
    ("d", "date'2020-01-01' + int(id * 31 % 365)", "unix_date({})"),
    ("t", "timestamp'2020-01-01' + make_dt_interval(0, id * 17 % 999)", "unix_micros({})"),
    ("c", "cast(id * 13 % 600 AS decimal(20,2)) / 8", "{}"),
    ("s", "concat('key-', id * 7919 % 300)", "{}"),
    ("f", "if(id % 5 = 0, double('NaN'), id % 77)", "{}"),
    ("x", "unhex(hex(id * 7919 % 600))", "lower(hex({}))"),
    ("y", "id % 2 = 0", "{}"),
    ("n", "if(id < 150, null, id)", "{}"),
    ("st", "named_struct('in.ner', id % 10)", "{}"),
    (ODD, "id * 7 % 100", "{}"),
]


@pytest.fixture(scope="module")
def reported(spark: SparkSession) -> Iterator[str]:
    """A table with about 16 clustered files and one file without an index entry."""
    values = [f"{made} AS `{name}`" for name, made, _ in COLUMNS]
    rows = spark.range(0, 600, 1, 4).selectExpr(*values)
    rows.write.saveAsTable("reported")
    folder = Path(folder_of(spark, "reported"))
    aim_at(spark, folder, 16)
    spark.sql("OPTIMIZE reported ZORDER BY (a, b)").collect()
    spark.conf.set("spark.sql.zorder.write.index", "false")
    rows.limit(30).coalesce(1).write.insertInto("reported")
    spark.conf.unset("spark.sql.zorder.write.index")
    yield "reported"
    spark.sql("DROP TABLE reported")


def folder_of(spark: SparkSession, table: str) -> str:
    rows = spark.sql(f"DESCRIBE FORMATTED {table}").where("col_name = 'Location'").collect()
    return rows[0]["data_type"].removeprefix("file:")


NUMBERS = "nullif(f, double('NaN'))"


@pytest.fixture(scope="module")
def rows_say(spark: SparkSession, reported: str) -> dict[str, dict[str, Any]]:
    """The minimum and maximum of each column in each file, ignoring NaN and null. A single scan
    computes all of them."""
    ends = [
        kept.format(f"{end}({NUMBERS if name == 'f' else sql_of(name)})")
        for name, _, kept in COLUMNS
        for end in ("min", "max")
    ]
    with plain(spark):
        rows = spark.sql(
            f"SELECT _metadata.file_name, {', '.join(ends)} FROM {reported} GROUP BY 1"
        ).collect()
    pairs = {name: 2 * i + 1 for i, (name, _, _) in enumerate(COLUMNS)}
    return {
        name: {row[0]: None if row[i] is None else (row[i], row[i + 1]) for row in rows}
        for name, i in pairs.items()
    }


def sql_of(name: str) -> str:
    return "st.`in.ner`" if name == "st" else f"`{name}`"


@pytest.mark.parametrize("name", [name for name, _, _ in COLUMNS])
def test_bounds_are_those_of_the_rows(
    spark: SparkSession, reported: str, rows_say: Any, name: str
) -> None:
    found = layout.read(spark, reported, [sql_of(name)])
    by_name = {file.path.rsplit("/", 1)[-1]: file for file in found.files}
    assert {file: reported.bounds[0] for file, reported in by_name.items()} == rows_say[name]
    nothing = {file for file, bounds in rows_say[name].items() if bounds is None}
    assert {file for file, reported in by_name.items() if reported.empty[0]} == nothing
    assert sum(file.rows or 0 for file in found.files) == 630
    assert sum(file.indexed for file in found.files) == len(found.files) - 1
    drawn = drawing.draw_rectangles({"t": found}, False)._repr_svg_()
    assert drawn.count("<path") >= len(found.covering())


# (condition, the box over a and b)
BOXES = [
    ("a = 7", ((7, 7), (None, None))),
    ("a BETWEEN 10 AND 50 AND b < 100", ((10, 50), (None, 100))),
    ("a IN (500, 3, 90) AND b >= 20 AND b <= 30", ((3, 500), (20, 30))),
    ("a = 3 OR a = 9", ((3, 9), (None, None))),
    ("a = 3 OR b = 9", ((None, None), (None, None))),
    ("NOT (a < 100 OR b > 5)", ((100, None), (None, 5))),
    ("a + 1 = 8 AND s LIKE 'key-1%'", ((None, None), (None, None))),
    ("a IN (SELECT a FROM reported WHERE a < 5) AND b < 9", ((None, None), (None, 9))),
]


@pytest.mark.parametrize(("where", "box"), BOXES)
def test_the_box_and_the_files_that_are_lit(
    spark: SparkSession, reported: str, where: str, box: Any
) -> None:
    found = layout.read(spark, reported, where=where)
    assert [column.name for column in found.columns] == ["a", "b"]
    assert found.box == box
    lit = {path.rsplit("/", 1)[-1] for path in found.opened or ()}
    explained = pyzorder.explain(spark.table(reported).where(where))
    assert lit == {p.rsplit("/", 1)[-1] for scan in explained for p in scan.details["opened"]}
    if "SELECT" not in where:
        (needed,) = truth(spark, reported, [where])
        assert needed["true"] <= lit


# (column, condition, the box's range in this column)
TYPED = [
    ("d", "d > date'2020-03-01'", (18322, None)),
    ("t", "t <= timestamp'2020-01-02'", (None, "unix_micros(timestamp'2020-01-02')")),
    ("c", "c = 1.5", (Decimal("1.5"), Decimal("1.5"))),
    ("f", "f < 3", (None, 3.0)),
    ("f", "f < double('Infinity')", (None, float("inf"))),
    ("s", "s LIKE 'key-1%'", ("key-1", "key-1\U0010ffff")),
    ("x", "x >= x'0a'", ("0a", None)),
    ("y", "y", (True, True)),
    ("st.`in.ner`", "st.`in.ner` = 4", (4, 4)),
]


@pytest.mark.parametrize(("column", "where", "side"), TYPED)
def test_boxes_of_every_type(
    spark: SparkSession, reported: str, column: str, where: str, side: Any
) -> None:
    asked = [
        v if not isinstance(v, str) or "(" not in v else spark.sql(f"SELECT {v}").head()[0]
        for v in side
    ]
    assert layout.read(spark, reported, [column], where).box == (tuple(asked),)


def test_by_its_path_it_is_the_same(spark: SparkSession, reported: str) -> None:
    by_name = layout.read(spark, reported, ["a"], "a < 9")
    by_path = layout.read(spark, folder_of(spark, reported), ["a"], "a < 9")
    assert (by_path.files, by_path.opened, by_path.box) == (
        by_name.files,
        by_name.opened,
        by_name.box,
    )
    assert by_path.target.startswith("'file:/") and by_name.target == "default.reported"


def test_depth_is_what_describe_says(spark: SparkSession, reported: str) -> None:
    health = {
        row["column"]: row for row in spark.sql(f"DESCRIBE SKIPPING INDEX ON {reported}").collect()
    }
    for column in ("a", "b", "d", "f"):
        found = layout.read(spark, reported, [column])
        ranges: Any = [file.bounds[0] for file in found.files if file.indexed]
        deepest = max(sum(low <= end <= high for low, high in ranges) for end, _ in ranges)
        assert deepest == health[column]["max_depth"]
    picture = plot.depth(spark, reported, ["a", "b", "s"])
    assert len(picture.axes) == 3


# (a call, the type of its error, text in the error)
REFUSED = [
    (
        lambda spark: plot.rectangles(spark, "reported", ["a", "b", "d"]),
        ZOrderError,
        "RECTANGLE_COLUMNS",
    ),
    (
        lambda spark: plot.rectangles(spark, "reported", ["nowhere"]),
        AnalysisException,
        "no column nowhere",
    ),
    (
        lambda spark: plot.rectangles(spark, "reported", ["a", "A"]),
        AnalysisException,
        "listed twice",
    ),
    (lambda spark: plot.rectangles(spark, "reported", ["st"]), AnalysisException, "no order"),
    (lambda spark: plot.rectangles(spark, "reported", ["a a"]), AnalysisException, "Syntax error"),
    (
        lambda spark: plot.rectangles(spark, "reported", where="nowhere = 1"),
        AnalysisException,
        "nowhere",
    ),
    (
        lambda spark: plot.rectangles(spark, "reported", where="a = "),
        ParseException,
        "PARSE_SYNTAX",
    ),
    (lambda spark: plot.depth(spark, "nowhere"), AnalysisException, "nowhere"),
    (
        lambda spark: report.write(spark, "/nowhere/at/all", "r.html"),
        AnalysisException,
        "/nowhere/at/all does not exist",
    ),
]


@pytest.mark.parametrize(("call", "error", "said"), REFUSED)
def test_refused(spark: SparkSession, reported: str, call: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        call(spark)


def test_without_an_index(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "plain")
    rows = spark.range(0, 100, 1, 2).selectExpr(
        "id AS a", "id % 2 AS p", "if(id < 50, null, 1) AS n"
    )
    rows.write.partitionBy("p").orc(folder)
    found = layout.read(spark, folder, ["a", "n"], "a < 10 AND p = 1")
    assert not found.has_index and not any(file.indexed for file in found.files)
    assert len(found.covering()) == 2 and len(found.opened or ()) == len(found.files) // 2 == 2
    assert found.notes()[0] == "Not shown: 2 files with only nulls or NaN in n, 1 of them opened."
    assert not (tmp_path / "plain" / "_zorder").exists()
    with pytest.raises(AnalysisException, match="ZORDER_PARTITION_COLUMN"):
        layout.read(spark, folder, ["p"])
    page = report.write(spark, folder, tmp_path / "r.html").read_text()
    assert "The table has no index." in page and "CREATE SKIPPING INDEX ON &#39;file:" in page
    assert "OPTIMIZE &#39;file:" in page


def test_a_first_optimize_that_pays(spark: SparkSession, tmp_path: Path) -> None:
    """Like DRY RUN, the report says whether a table's first OPTIMIZE would pay off."""
    folder = str(tmp_path / "t")
    spark.range(0, 200_000, 1, 4).selectExpr(
        "id * 7919 % 200000 AS a", "id * 104729 % 200000 AS b", "sha2(CAST(id AS STRING), 512) AS s"
    ).write.parquet(folder)
    optimize = f"OPTIMIZE '{folder}' ZORDER BY (a, b)"
    remark = spark.sql(f"{optimize} DRY RUN").head()["metrics"]["remark"]
    assert remark.startswith("Pays off: a lookup would read ")
    page = html.unescape(report.write(spark, folder, tmp_path / "r.html").read_text())
    assert "Cluster and index the files by these columns or, better" in page
    assert "Pays off: a lookup would read " in page and "ZORDER BY (a, b)" in page
    spark.range(10).selectExpr("id AS a").coalesce(1).write.parquet(str(tmp_path / "tiny"))
    page = report.write(spark, str(tmp_path / "tiny"), tmp_path / "r.html").read_text()
    assert "Clustering the files by a would not help. Does not pay off: " in page
    assert "ZORDER BY" not in page


def test_history(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "t")
    spark.range(0, 1000, 1, 4).selectExpr("id * 7919 % 1000 AS a", "id AS b").write.parquet(folder)
    table = pyzorder.ZOrderTable.forPath(spark, folder)
    assert history.read(spark, folder) == []
    target_size(spark, 4000)
    first = metrics(table.optimize().executeZOrderBy("a"))
    table.optimize().executeZOrderBy("a").collect()
    table.restoreBeforeOptimize().collect()
    spark.conf.set("spark.sql.zorder.vacuum.retentionCheck", "false")
    table.vacuum(retentionHours=0).collect()
    runs = history.read(spark, folder)
    added, removed = first["numFilesAdded"], first["numFilesRemoved"]
    assert [(run.run, run.operation, run.committed, run.removed, run.added) for run in runs] == [
        (1, "OPTIMIZE", True, removed, added),
        (2, "OPTIMIZE", False, 0, 0),
        (3, "RESTORE", True, added, removed),
        (4, "VACUUM", False, 0, 0),
    ]
    assert runs[0].removedBytes == first["filesRemoved"]["totalSize"]
    assert runs[0].addedBytes == first["filesAdded"]["totalSize"]
    assert runs.kept_bytes == 0 and all(run.took.total_seconds() < 600 for run in runs)
    table.optimize().executeZOrderBy("a").collect()
    runs = history.read(spark, folder)
    kept = list(tmp_path.glob("t/_zorder/_retired/_5/*.retired"))
    assert (runs[-1].kept, runs.kept_bytes) == (
        len(kept),
        sum(file.stat().st_size for file in kept),
    )
    assert len(kept) == runs[-1].removed


class Page(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_report(spark: SparkSession, reported: str, tmp_path: Path) -> None:
    where = f"a < 50 AND `{ODD}` < 50 AND s < '</code><script src=x>'"
    path = report.write(spark, reported, tmp_path / "new" / "r.html", ["a", "b", f"`{ODD}`"], where)
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    tags = [tag for tag, _ in page.elements]
    assert not {"script", "img", "iframe", "object", "embed", "base"} & set(tags)
    assert [v for _, attributes in page.elements for name, v in attributes.items()
            if name in ("src", "href", "xlink:href") and not str(v).startswith("#")] == []  # fmt: skip
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on")
    ]
    assert re.findall(r"(?:url\(|@import)\s*['\"]?(?!#)[^)]*", text) == []
    assert tags.count("svg") >= 4
    assert page.texts.count(ODD) >= 2  # in a table row, and in labels of pictures
    assert f"WHERE {where}" in page.texts
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    joined = " ".join("".join(page.texts).split())
    found = layout.read(spark, reported, ["a"], where)
    opened = len(found.opened or ())
    rows = [attributes.get("class") for tag, attributes in page.elements if tag == "tr"]
    assert rows[1:4] == ["clustered", "clustered", None], "the clustering columns come first"
    for statement in ("REFRESH SKIPPING INDEX ON default.reported", "VACUUM default.reported"):
        assert statement in page.texts, "the statement must be a single text, so it can be copied"
    for said in (
        f"reported 1 of {len(found.files)} files unindexed: a lookup on a opens ",
        "Rows630", f"opens {opened} of ", "Every query opens 1 unindexed file.",
        "OPTIMIZE would cluster 1 new file", "replaced ", "RESTORE",
    ):  # fmt: skip
        assert said in joined, said


def health(column: str, **more: Any) -> report.Health:
    known = report.Health(column, "INT", 1, 0, 0, 0.0, 1, 0.25, 0.5, 0, None, "", None)
    return dataclasses.replace(known, **more)


# (rows of DESCRIBE SKIPPING INDEX, whether the table is healthy, the verdict on a table with one
# file)
VERDICTS: list[tuple[list[report.Health], bool, str]] = [
    ([], False, "The table has no index: every query opens 1 of 1 file."),
    ([health("a"), health("b", lookup_share=0.125)], False,
     "Indexed, but not clustered: at best, a lookup on b opens 12% of 1 file."),
    ([health("a", lookup_share=None)], False,
     "Indexed, but not clustered: no bounds are known."),
    ([health("a", clustered=1), health("b")], True,
     "Clustered and indexed: a lookup on a opens 25% of 1 file."),
    ([health("a", clustered=1, unindexed=1)], False,
     "1 of 1 file unindexed: a lookup on a opens 25% of 1 file."),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "good", "says"), VERDICTS)
def test_the_verdict(columns: list[report.Health], good: bool, says: str) -> None:
    file = layout.DataFile("f", 1, 1, True, (), (), ())
    one = layout.Layout("t", "t", bool(columns), "/t", "parquet", "UTC", (), (file,))
    assert report.verdict(one, columns) == report.Verdict(good, says)
    none = report.verdict(dataclasses.replace(one, files=()), columns)
    assert none == report.Verdict(True, "The table has no files.")


def test_columns_are_sorted_clustered_first() -> None:
    columns = [health("a"), health("b", lookup_share=None), health("c", lookup_share=0.1),
               health("d", clustered=1, lookup_share=0.9), health("e", clustered=1)]  # fmt: skip
    assert [column.column for column in report.clustered_first(columns)] == list("edcab")


def test_notebooks_show_tables(spark: SparkSession, reported: str) -> None:
    explained = pyzorder.explain(spark.table(reported).where(f"`{ODD}` + a = 3"))
    shown = {
        "explain": explained,
        "layout": layout.read(spark, reported),
        "history": history.read(spark, reported),
    }
    for name, result in shown.items():
        page = Page(result._repr_html_())
        assert [tag for tag, _ in page.elements].count("table") == 1, name
        assert (
            reported in page.texts
            or "OPTIMIZE" in page.texts
            or any(reported in t for t in page.texts)
        ), name
    assert ODD not in explained._repr_html_()


def test_the_hilbert_curve_is_the_jvm_s(spark: SparkSession) -> None:
    bits = 3
    jvm: Any = spark._jvm
    x, y = curves.cells("hilbert", bits)
    for place, cell in enumerate(zip(x, y, strict=True)):
        point = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Integer.TYPE, 2)
        point[0], point[1] = int(cell[0]), int(cell[1])
        jvm.io.pyzorder.layout.cells.HilbertCurve.transpose(point, bits)
        text = "".join(f"{point[0]:0{bits}b}"[i] + f"{point[1]:0{bits}b}"[i] for i in range(bits))
        assert int(text, 2) == place
