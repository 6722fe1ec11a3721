"""`files`, `dataset` and `scan_polars` need neither Spark nor Java. If a package is missing, the
error message names the extra that installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.engine_tables import make

ROOT = Path(__file__).parents[3]

CALLS = {
    "files": "assert len(pyzorder.files(path, 'a = 7')) == 1",
    "dataset": "assert pyzorder.dataset(path).count_rows() == 2",
    "scan_polars": "assert pyzorder.scan_polars(path).collect().height == 2",
}


def run(script: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys\npath = {str(path)!r}\n{script}"],
        capture_output=True, text=True, cwd=ROOT, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_spark(tmp_path: Path, call: str) -> None:
    make(tmp_path, {"a.parquet": pa.table({"a": [1]}), "b.parquet": pa.table({"a": [7]})})
    blocked = "sys.modules['pyspark'] = sys.modules['py4j'] = None"
    done = run(f"{blocked}\nimport pyzorder\n{call}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_nothing_is_imported_early(tmp_path: Path) -> None:
    shown = "print(*(m for m in ('pyarrow', 'polars', 'sqlglot', 'pyspark') if m in sys.modules))"
    assert run(f"import pyzorder\n{shown}", tmp_path).stdout == "\n"


@pytest.mark.parametrize(
    ("package", "function", "extra"),
    [
        ("sqlglot", "files", "arrow"), ("pyarrow", "files", "arrow"), ("pyarrow", "dataset", "arrow"),
        ("polars", "scan_polars", "polars"),
    ],
)  # fmt: skip
def test_missing_packages(tmp_path: Path, package: str, function: str, extra: str) -> None:
    done = run(
        f"sys.modules[{package!r}] = None\nimport pyzorder\n"
        f"try: pyzorder.{function}(path)\nexcept pyzorder.ZOrderError as error: print(error)",
        tmp_path,
    )
    assert done.stdout.startswith("[ZORDER_ENGINE_MISSING] "), done.stderr
    assert f"needs {package}," in done.stdout and f"pyzorder-spark[{extra}]" in done.stdout
