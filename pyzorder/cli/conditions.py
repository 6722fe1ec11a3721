"""--where: one SQL condition, and nothing else in its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pyzorder import bridge
from pyzorder.cli.failures import sentence

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_condition(spark: SparkSession, where: str | None) -> None:
    """Looks at a condition before anything is done with it.

    Raises:
        click.BadParameter: the text is not one condition, or something comes after it.
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
            f"{where!r} is not one SQL condition, such as \"day = '2024-01-01'\": "
            f"{sentence(failure)}",
            param_hint="--where",
        ) from None
    except AnalysisException:
        return  # it parses: what its columns are is for the statement to say
