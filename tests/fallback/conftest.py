"""Fixtures from tests/spark that the fallback's tests also use."""

from tests.spark.conftest import database, defaults

__all__ = ["database", "defaults"]
