"""Provides each test with a new folder on the store that PYZORDER_TEST_STORE names."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.folders import Folder


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Iterator[Folder]:
    """A folder that does not exist yet. It is deleted after the test."""
    root = os.environ.get("PYZORDER_TEST_STORE", f"file:{tmp_path}")
    made = Folder(spark, f"{root}/{uuid.uuid4()}/t")
    yield made
    made.delete()
