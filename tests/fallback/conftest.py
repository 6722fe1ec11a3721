"""Fixtures of tests/spark that the fallback's tests use as well."""

from tests.spark.conftest import database, defaults

__all__ = ["database", "defaults"]
