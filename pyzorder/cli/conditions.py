"""Checks that --where is a single SQL condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyzorder import bridge
from pyzorder.cli.failures import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_condition(spark: SparkSession, where: str | None) -> None:
    """Checks that text is a single SQL condition, before it becomes part of a statement.

    Raises:
        click.BadParameter: the text is not a condition, or more text follows the condition.
    """
    from pyspark.errors import AnalysisException, ParseException

    if where is None:
        return
    try:
        if bridge.is_connect(spark):
            _ = spark.range(0).where(where).schema
        else:
            bridge.require_condition(spark, where)
    except ParseException as failure:
        raise click.BadParameter(
            f"{where!r} is not a single SQL condition, such as \"day = '2024-01-01'\": "
            f"{sentence(failure)}",
            param_hint="--where",
        ) from None
    except AnalysisException:
        return  # the condition parses; the statement itself reports unknown columns
