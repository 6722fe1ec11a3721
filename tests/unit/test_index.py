"""`pyzorder.index` works with any engine, because it needs PyArrow but not Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pyzorder" / "index"

SCRIPT = """
import sys
import pyzorder.index
{imports}
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


def test_no_spark_is_imported() -> None:
    """The modules of the package are imported in a separate process."""
    files = [path.relative_to(PACKAGE.parents[1]) for path in PACKAGE.rglob("*.py")]
    names = [".".join(path.with_suffix("").parts) for path in files]
    script = SCRIPT.format(
        imports="\n".join(f"import {n.removesuffix('.__init__')}" for n in names)
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"pyspark", "py4j", "pandas"} & set(done.stdout.split())
    assert {"pyarrow", "pyzorder"} <= set(done.stdout.split())


def test_no_file_speaks_of_the_fallback() -> None:
    """No module of this package imports Spark or the fallback. The fallback depends on this
    package."""
    assert len(list(PACKAGE.rglob("*.py"))) > 10
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text().splitlines()
        imports = [line for line in lines if line.lstrip().startswith(("import ", "from "))]
        assert not [line for line in imports if "pyspark" in line or "fallback" in line], path


def test_folders_stay_small() -> None:
    for folder in (PACKAGE, PACKAGE / "predicates", PACKAGE.parent / "fallback"):
        assert len(list(folder.glob("*.py"))) <= 20
