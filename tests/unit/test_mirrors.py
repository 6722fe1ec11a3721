"""Every module has either a test that is named after it, or a row in tests/README.md that lists its
tests."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
JVM = ROOT / "jvm" / "src"

#: The folders in tests/ that mirror all of pyzorder/. Other folders, such as fallback/, mirror a
#: single package.
KINDS = ("unit", "property", "spark")

PYTHON = sorted(
    file.relative_to(ROOT).as_posix()
    for file in (ROOT / "pyzorder").rglob("*.py")
    if not file.stem.startswith("__")
)
SCALA = sorted({
    file.relative_to(top).as_posix()
    for top in (JVM / "main").glob("scala*")
    for file in top.rglob("*.scala")
})  # fmt: skip
SUITES = sorted(
    file.relative_to(JVM / "test" / "scala").as_posix()
    for file in (JVM / "test").rglob("*Suite.scala")
)


def rows() -> dict[str, list[str]]:
    """The table in tests/README.md as a dictionary. A key is a module, or a package if it ends in
    `/`. The value is the list of its tests."""
    page = (TESTS / "README.md").read_text(encoding="utf-8")
    section = re.search(
        r"^## Modules without a test of the same name$(.*?)(?=^## |\Z)", page, re.M | re.S
    )
    assert section is not None
    found = {}
    for line in section[1].splitlines():
        if line.startswith("| `"):
            module, tests = line.strip("| ").split(" | ")
            found[module.strip(" `")] = re.findall("`([^`]+)`", tests)
    return found


def mirrors(module: str) -> list[str]:
    """The possible paths of a test that is named after the module. They are relative to tests/ or
    jvm/src/test/scala/."""
    path = PurePosixPath(module)
    if path.suffix == ".scala":
        return [str(path.with_name(f"{path.stem}Suite.scala"))]
    package = path.parent.relative_to("pyzorder")
    name = f"test_{path.stem.lstrip('_')}.py"
    inside = [str(package / name)] if package.parts else []
    return [*(str(kind / package / name) for kind in map(PurePosixPath, KINDS)), *inside]


def is_mirrored(module: str) -> bool:
    """Whether a test file is named after the module."""
    tests = JVM / "test" / "scala" if module.endswith(".scala") else TESTS
    return any((tests / mirror).exists() for mirror in mirrors(module))


def is_named(module: str, table: dict[str, list[str]]) -> bool:
    """Whether the table has a row for the module or its package."""
    return module in table or f"{PurePosixPath(module).parent}/" in table


@pytest.mark.parametrize("module", PYTHON + SCALA)
def test_each_module_has_a_test(module: str) -> None:
    assert is_mirrored(module) or is_named(module, rows()), (
        f"no test is called {' or '.join(mirrors(module))}, and the table "
        '"Modules without a test of the same name" in tests/README.md has no row for the module'
    )


@pytest.mark.parametrize("module", list(rows()))
def test_each_row_is_needed(module: str) -> None:
    """Each row covers at least one existing module that has no test of the same name."""
    assert [m for m in PYTHON + SCALA if is_named(m, {module: []}) and not is_mirrored(m)]


@pytest.mark.parametrize(("module", "tests"), list(rows().items()))
def test_each_row_names_tests(module: str, tests: list[str]) -> None:
    assert tests
    for test in tests:
        assert (TESTS / test).exists() and (
            "/test_" in test or any((TESTS / test).rglob("test_*.py"))
        ), test


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_mirrors_a_source(suite: str) -> None:
    assert suite.replace("Suite.scala", ".scala") in SCALA


def test_a_module_without_tests_is_found() -> None:
    table = {"pyzorder/cli/": ["unit/cli/"], "pyzorder/bridge.py": ["spark/test_session.py"]}
    assert is_named("pyzorder/cli/new.py", table) and is_named("pyzorder/bridge.py", table)
    for module in ("pyzorder/new.py", "pyzorder/index/new.py", "io/pyzorder/index/New.scala"):
        assert not is_mirrored(module) and not is_named(module, table)
    assert is_mirrored("pyzorder/boundaries.py")
    assert is_mirrored("pyzorder/fallback/kd_tree.py")
    assert is_mirrored("io/pyzorder/expressions/Boundaries.scala")
