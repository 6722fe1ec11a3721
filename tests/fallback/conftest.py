"""Fixtures from tests/spark that the tests of the fallback also use."""

from tests.spark.conftest import database, defaults

__all__ = ["database", "defaults"]
