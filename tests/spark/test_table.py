"""Invalid calls of ZOrderTable raise the expected errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pyzorder import ZOrderError, ZOrderTable
from pyzorder.table import OptimizeBuilder

# (a call on the builder of an OPTIMIZE, the condition of the error)
REFUSED: list[tuple[Callable[[OptimizeBuilder], object], str]] = [
    (lambda optimize: optimize.executeZOrderBy(), "ZORDER_NO_COLUMNS"),
    (lambda optimize: optimize.executeZOrderBy([]), "ZORDER_NO_COLUMNS"),
    (lambda optimize: optimize.executeZOrderBy(F.col("a")), "ZORDER_NOT_A_COLUMN_NAME"),
    (lambda optimize: optimize.executeZOrderBy("a", 1), "ZORDER_NOT_A_COLUMN_NAME"),
    (lambda optimize: optimize.where("a = 1").where("b = 2"), "ZORDER_WHERE_TWICE"),
]


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> Iterator[ZOrderTable]:
    spark.sql("CREATE TABLE told (a INT, b INT) USING parquet")
    yield ZOrderTable.forName(spark, "told")
    spark.sql("DROP TABLE told")


@pytest.mark.parametrize(("call", "condition"), REFUSED)
def test_refused(
    table: ZOrderTable, call: Callable[[OptimizeBuilder], object], condition: str
) -> None:
    with pytest.raises(ZOrderError) as raised:
        call(table.optimize())
    assert raised.value.condition == condition


def test_there_is_no_such_table(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND.*nowhere"):
        ZOrderTable.forName(spark, "nowhere")


def test_there_is_no_such_folder(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="ZORDER_PATH_NOT_FOUND"):
        ZOrderTable.forPath(spark, "/nowhere/at/all").optimize().executeCompaction()
