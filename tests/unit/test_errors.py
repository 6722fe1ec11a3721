"""pyzorder/error_conditions.json is consistent, and code that raises an error passes every
parameter of its message."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyzorder import errors
from tests.support.documents import ROOT, text

SCALA = ROOT / "jvm" / "src" / "main"
PYTHON = ROOT / "pyzorder"

#: Identifiers that may start a sentence.
CODE = {
    "executeZOrderBy", "pyzorder", "pyzorder's", "pyzorder.advisor", "pyzorder.explain", "pyzorder.maintain",
    "range_id", "spark.sql.extensions", "vacuum", "where",
}  # fmt: skip

#: Conditions whose messages do not suggest an action, because no action would help.
HOPELESS = {"ZORDER_CANNOT_RESTORE"}


def messages() -> dict[str, list[str]]:
    """The sentences of each message, by the name of its condition and variant."""
    found = {}
    for condition, entry in errors.conditions().items():
        if "message" in entry:
            found[condition] = entry["message"]
        for variant, message in entry.get("variants", {}).items():
            found[f"{condition}.{variant}"] = message
    return found


MESSAGES = messages()


def scala_calls(source: str) -> Iterator[tuple[str, set[str]]]:
    """The entries of error_conditions.json that a Scala file uses, and the parameters that it
    passes to each entry."""
    for start in re.finditer(r'\berror\(\s*"(ZORDER_[A-Z_.]+)"', source):
        depth, end, arguments = 1, start.end(), ""
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            arguments += source[end]
            end += 1
        yield start[1], set(re.findall(r'"(\w+)" ->', arguments))


def python_calls(source: str) -> Iterator[tuple[str, set[str]]]:
    """The entries of error_conditions.json that a Python file uses, and the parameters that it
    passes to each entry."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "error":
            (name,) = call.args
            yield ast.literal_eval(name), {str(keyword.arg) for keyword in call.keywords}


def sources(folder: Path, suffix: str) -> list[str]:
    """The contents of the source files below a folder."""
    return [file.read_text(encoding="utf-8") for file in sorted(folder.rglob(f"*{suffix}"))]


CALLS = [
    *(call for source in sources(SCALA, ".scala") for call in scala_calls(source)),
    *(call for source in sources(PYTHON, ".py") for call in python_calls(source)),
]


# ---- the catalogue ------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["pyproject.toml", "MANIFEST.in"])
def test_the_catalogue_is_packaged(page: str) -> None:
    """The wheel and the source distribution contain error_conditions.json. test_pom.py checks that
    the jar contains it."""
    assert errors.CATALOGUE.name in text(page)


def test_conditions_are_sorted() -> None:
    assert list(errors.conditions()) == sorted(errors.conditions())


@pytest.mark.parametrize("condition", errors.conditions())
def test_an_entry_has_a_state_and_a_message_or_variants(condition: str) -> None:
    entry = errors.conditions()[condition]
    assert re.fullmatch("ZORDER(_[A-Z]+)+", condition)
    assert re.fullmatch("[0-9A-Z]{5}", entry["sqlState"])
    assert set(entry) in ({"sqlState", "message"}, {"sqlState", "variants"})
    assert len(entry.get("variants", "..")) > 1


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_says_what_happened_and_what_to_do(name: str) -> None:
    message = MESSAGES[name]
    assert len(message) == (1 if name.partition(".")[0] in HOPELESS else 2)
    for part in message:
        assert re.match("[A-Z'<]", part) or part.split()[0].strip("':") in CODE, part
        assert part.endswith(".") and not re.search(r"[.:;,] ?\.$", part), part


def test_no_sentence_stands_in_two_entries() -> None:
    """Only variants of the same condition may share the sentence that says what happened. Any
    messages may share the sentence that says what to do."""
    happened = {(name.partition(".")[0], message[0]) for name, message in MESSAGES.items()}
    sentences = Counter(sentence for _, sentence in happened)
    assert [sentence for sentence, times in sentences.items() if times > 1] == []
    assert max(Counter(map(tuple, MESSAGES.values())).values()) == 1


# ---- where errors are raised --------------------------------------------------------------------


def test_calls_are_found() -> None:
    scala = 'e match { case A => error(\n "ZORDER_A.B", "a" -> b(c), "d" -> e(f(1))) }'
    assert list(scala_calls(scala)) == [("ZORDER_A.B", {"a", "d"})]
    assert list(python_calls("raise error('ZORDER_A', b=1) from c")) == [("ZORDER_A", {"b"})]


def test_every_entry_is_raised_and_every_error_has_an_entry() -> None:
    assert {name for name, _ in CALLS} == set(MESSAGES)


@pytest.mark.parametrize(("name", "given"), CALLS)
def test_every_placeholder_is_given(name: str, given: set[str]) -> None:
    assert given == set(errors.PLACEHOLDER.findall(" ".join(MESSAGES[name])))


def test_every_condition_in_the_sources_is_in_the_catalogue() -> None:
    named = {
        name
        for source in sources(SCALA, ".scala") + sources(PYTHON, ".py")
        for name in re.findall(r"\bZORDER_[A-Z_]*[A-Z]\b(?![_…])", source)
    }
    assert named - set(errors.conditions()) == set()


def test_errors_are_made_in_one_place() -> None:
    made = re.compile(r"new ZOrderException\(|(?<!class )\bZOrderError\(")
    files = [*SCALA.rglob("*.scala"), *PYTHON.rglob("*.py")]
    found = {file.name for file in files if made.search(file.read_text(encoding="utf-8"))}
    assert found == {"ZOrderErrors.scala", "errors.py"}


# ---- errors in Python ---------------------------------------------------------------------------


def test_an_error_has_its_condition_state_and_sentence() -> None:
    error = errors.error("ZORDER_PATH_NOT_FOUND", path="/a/<b>")
    assert (error.condition, error.sql_state) == ("ZORDER_PATH_NOT_FOUND", "42K03")
    assert str(error).startswith("[ZORDER_PATH_NOT_FOUND] The path /a/<b> does not exist.")


def test_of_variants_users_see_the_condition() -> None:
    error = errors.error("ZORDER_NO_SPACE.FULL", target="/t", reason="no space")
    assert error.condition == "ZORDER_NO_SPACE" and str(error).startswith("[ZORDER_NO_SPACE] ")


def test_a_parameter_more_or_less_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        errors.error("ZORDER_PATH_NOT_FOUND")
    with pytest.raises(TypeError):
        errors.error("ZORDER_PATH_NOT_FOUND", path="/a", folder="/b")


def test_passwords_are_not_told() -> None:
    error = errors.error("ZORDER_PATH_NOT_FOUND", path="s3a://key:hunter2@bucket/t")
    assert "s3a://***@bucket/t" in str(error) and "hunter2" not in str(error)


# ---- quotations of messages ---------------------------------------------------------------------

#: Quotations in rejected.txt that are parameters of a message rather than part of its text.
PARAMETERS = {
    "map<int,int>", "zorder.clusterBy", "json", "subquery", "not deterministic",
    "torn_parquet/part-", "torn_orc/part-", "io.delta.sql.DeltaSparkSessionExtension",
}  # fmt: skip


def rejected() -> list[tuple[str, str]]:
    """The condition and the quotation for each rejected statement, except for syntax errors."""
    lines = text("sql/statements/rejected.txt").splitlines()
    rows = [line.split(" | ") for line in lines if line and not line.startswith("#")]
    return [
        (condition, words)
        for _, condition, words in rows
        if condition.startswith("ZORDER_") and condition != "ZORDER_SYNTAX_ERROR"
    ]


def quotes(words: str, message: str) -> bool:
    """Whether the message contains the quoted words. Some of the words may be the value of a
    placeholder."""
    literals = errors.PLACEHOLDER.split(message)[::2]
    ends = [words[:n] for n in range(4, len(words))] + [words[n:] for n in range(len(words) - 4)]
    return any(
        words in literal or any(literal.startswith(e) or literal.endswith(e) for e in ends)
        for literal in literals
    )


@pytest.mark.parametrize(("condition", "words"), rejected())
def test_refused_statements_quote_the_catalogue(condition: str, words: str) -> None:
    """Quotations in rejected.txt match error_conditions.json. The tests that run the statements
    check the values of placeholders."""
    own = [" ".join(MESSAGES[name]) for name in MESSAGES if name.partition(".")[0] == condition]
    assert words in PARAMETERS or any(quotes(words, message) for message in own)
