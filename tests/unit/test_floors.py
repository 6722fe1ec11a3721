"""The layers in docs/architecture.md match the sources. No package imports a package from a higher
layer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCALA = ROOT / "jvm" / "src" / "main" / "scala" / "io" / "pyzorder"
MOST_FILES = 20

#: The package in an import or a qualified name. The match ends just before the class name.
NAME = re.compile(r"\bio\.pyzorder((?:\.[a-z]\w*)+)\.(?=[A-Z{_])")


def floors() -> list[str]:
    """The packages below io.pyzorder in the diagram, from the lowest layer to the highest."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(r'^```text title="floors"\n(.*?)^```$', page, re.M | re.S)
    assert picture is not None
    return [line.split()[0] for line in reversed(picture[1].splitlines())]


def package(file: Path) -> str:
    """Returns `index.store` for io/pyzorder/index/store/IndexStore.scala."""
    return ".".join(file.parent.relative_to(SCALA).parts)


def imported(text: str) -> set[str]:
    """The packages that occur in a source file outside comments."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return {name.removeprefix(".") for name in NAME.findall(code)}


def upward(order: list[str], importer: str, names: set[str]) -> list[str]:
    """The imported packages that are not in a lower layer than the importing package."""
    return sorted(n for n in names - {importer} if order.index(n) > order.index(importer))


SOURCES = sorted(file for file in SCALA.rglob("*.scala") if file.parent != SCALA)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_imports_run_down(file: Path) -> None:
    assert upward(floors(), package(file), imported(file.read_text(encoding="utf-8"))) == []


def test_an_upward_import_is_found() -> None:
    text = "import io.pyzorder.api.{A, B}\n// io.pyzorder.commands.C\nval d = io.pyzorder.index.D"
    assert imported(text) == {"api", "index"}
    assert upward(["index", "api"], "index", imported(text)) == ["api"]


def test_each_package_has_a_floor() -> None:
    assert sorted(floors()) == sorted({package(file) for file in SOURCES})


def test_only_the_extensions_page_stands_above_the_floors() -> None:
    assert [file.name for file in SCALA.glob("*.scala")] == ["ZOrderExtensions.scala"]


@pytest.mark.parametrize("top", [SCALA, ROOT / "pyzorder", ROOT / "jvm" / "src" / "test"])
def test_no_folder_is_crowded(top: Path) -> None:
    folders = {file.parent for file in top.rglob("*") if file.suffix in (".scala", ".py")}
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in folders
        if (
            count := sum(
                f.suffix in (".scala", ".py") and f.stem != "__init__" for f in folder.iterdir()
            )
        )
        > MOST_FILES
    }
    assert crowded == {}


def test_python_reaches_the_jvm_through_api_alone() -> None:
    sources = (ROOT / "pyzorder").rglob("*.py")
    named = {n for f in sources for n in re.findall(r"jvm\.io\.pyzorder\.(\w+)", f.read_text())}
    assert named == {"api"}
