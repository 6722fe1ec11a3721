"""Generates parts of the reference pages from a session with pyzorder and from sql/statements.

Markers such as `<!-- from the code: settings -->` in docs/reference show where each part belongs.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

ROOT = Path(__file__).parents[1]
MARKER = re.compile(r"<!-- from the code: ([\w ]+) -->")

#: A query that returns the rows of the small table on which all statements run.
ROWS = "SELECT id % 10 AS a, id AS b FROM range(100)"

FUNCTIONS = ("interleave_bits", "zorder_value", "range_id")


@dataclass(frozen=True)
class Setting:
    """A setting that the jar declares. `property` is None if the setting has no table property."""

    key: str
    default: str
    doc: str
    property: str | None


@contextmanager
def session() -> Iterator[SparkSession]:
    """Provides a local session with pyzorder, and stops it after the `with` block."""
    from pyspark.sql import SparkSession

    import pyzorder

    with tempfile.TemporaryDirectory() as folder:
        builder = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.warehouse.dir", folder)
        )
        spark = pyzorder.configure(builder).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


def pieces(spark: SparkSession) -> dict[str, str]:
    """Returns all generated parts as Markdown. The keys are the names in the markers."""
    makers: dict[str, Callable[[SparkSession], str]] = {
        "settings": settings_text,
        "statements": statements_text,
        "functions": functions_text,
        "results": results_text,
        "metrics in the UI": nodes_text,
        "accepted statements": lambda spark: accepted_text(),
        "exit codes": lambda spark: exit_codes_text(),
        "refused statements": lambda spark: refused_text(),
        "error conditions": lambda spark: conditions_text(),
    }
    return {name: make(spark) for name, make in makers.items()}


# ---- settings -----------------------------------------------------------------------------------


def settings(spark: SparkSession) -> list[Setting]:
    """Returns all settings except those for tests, in the order of ZOrderConf.scala."""
    found = []
    for setting in elements(jvm(spark).io.pyzorder.common.ZOrderConf.all()):
        of_tables = setting.getClass().getSimpleName() == "TableSetting"
        if setting.public():
            found.append(
                Setting(
                    setting.key(),
                    getattr(setting, "default")(),  # noqa: B009 - a keyword in Java, not in Scala
                    setting.doc(),
                    setting.property() if of_tables else None,
                )
            )
    return found


def settings_text(spark: SparkSession) -> str:
    """Returns one section per setting."""
    return "\n".join(
        f"### `{setting.key}`\n\nDefault: {f'`{setting.default}`' if setting.default else 'none'}."
        + (f" Table property: `{setting.property}`." if setting.property else "")
        + f"\n\n{setting.doc}\n"
        for setting in settings(spark)
    )


# ---- statements and functions -------------------------------------------------------------------


def usages(spark: SparkSession) -> list[str]:
    """Returns the syntax of each statement."""
    found = jvm(spark).io.pyzorder.parser.StatementGrammar.usages()
    return sorted(pair._2() for pair in elements(found.toSeq()))


def statements_text(spark: SparkSession) -> str:
    """Returns a code block with the syntax of all statements."""
    return "\n".join(["```", *usages(spark), "```"])


def functions_text(spark: SparkSession) -> str:
    """Returns a table of pyzorder's functions with the output of DESCRIBE FUNCTION."""
    rows = []
    for name in FUNCTIONS:
        lines = [row[0] for row in spark.sql(f"DESCRIBE FUNCTION {name}").collect()]
        (usage,) = (line for line in lines if line.startswith("Usage:"))
        call, _, says = usage.removeprefix("Usage:").strip().partition(" - ")
        rows.append([f"`{call}`", says])
    return table(["function", ""], rows)


def accepted_text() -> str:
    """Returns a code block with the statements that must be accepted."""
    return "\n".join(["```sql", *lines("accepted.txt"), "```"])


def refused_text() -> str:
    """Returns a table of the statements that must be rejected, with their error conditions and
    parts of the messages."""
    rows = [line.split(" | ") for line in lines("rejected.txt")]
    return table(
        ["statement", "condition", "the message contains"],
        [
            [f"`` {sql} ``", f"`{condition}`", f"… {escaped(words)} …"]
            for sql, condition, words in rows
        ],
    )


def conditions_text() -> str:
    """Returns a table of all errors, with one row per message."""
    from pyzorder import errors

    rows = []
    for condition, entry in errors.conditions().items():
        for message in entry.get("variants", {"": entry.get("message")}).values():
            happened, *to_do = (placeholders(sentence) for sentence in message)
            rows.append([f"`{condition}`", f"`{entry['sqlState']}`", happened, *(to_do or [""])])
    return table(["condition", "SQLSTATE", "what happened", "what to do"], rows)


def placeholders(sentence: str) -> str:
    """Returns a sentence of an error message as Markdown, with placeholders in italics and literal
    backquotes."""
    return re.sub(r"<(\w+)>", r"*\1*", escaped(sentence))


def escaped(text: str) -> str:
    """Returns text as Markdown in which backquotes are literal."""
    return text.replace("`", "\\`")


def unquoted(html: str) -> str:
    """Returns HTML in which the code tags in paragraphs are replaced with backquotes."""
    return re.sub(
        r"<p>.*?</p>",
        lambda paragraph: re.sub(r"</?code>", "`", paragraph[0]),
        html,
        flags=re.DOTALL,
    )


def exit_codes_text() -> str:
    """Returns the exit codes and examples at the end of `pyzorder --help`."""
    from pyzorder.cli.app import app

    return "\n".join(["```", (app.epilog or "").replace("\b\n", "").strip(), "```"])


def lines(name: str) -> list[str]:
    """Returns the statements in one of the files in sql/statements."""
    text = (ROOT / "sql" / "statements" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# ---- results and metrics ------------------------------------------------------------------------


def results(spark: SparkSession) -> dict[str, StructType]:
    """Runs each statement and table function that has a result, and returns its columns."""
    with tempfile.TemporaryDirectory() as folder:
        spark.sql(ROWS).repartition(4).write.parquet(f"{folder}/t")
        target = f"parquet.`{folder}/t`"
        statements = {
            "OPTIMIZE": f"OPTIMIZE {target} ZORDER BY (a)",
            "DESCRIBE SKIPPING INDEX": f"DESCRIBE SKIPPING INDEX ON {target}",
            "VACUUM": f"VACUUM {target} DRY RUN",
            "RESTORE": f"RESTORE {target} TO BEFORE OPTIMIZE",
            "statement_progress": "SELECT * FROM statement_progress('a-tag')",
            "optimize_history": f"SELECT * FROM optimize_history('{folder}/t')",
            "zorder_workload": f"SELECT * FROM zorder_workload('{folder}/t')",
        }
        return {name: spark.sql(statement).schema for name, statement in statements.items()}


def results_text(spark: SparkSession) -> str:
    """Returns a table of the result columns of each statement."""
    texts = []
    for name, schema in results(spark).items():
        rows = [[f"`{path}`", kind, comment] for path, kind, comment in columns(schema)]
        texts.append(f"### {name}\n\n{table(['column', 'type', ''], rows)}")
    return "\n\n".join(texts)


def columns(schema: StructType, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yields the path, type and comment of each column, followed by those of its fields."""
    for field in schema.fields:
        path = f"{prefix}{field.name}"
        inner = struct_of(field.dataType)
        kind = field.dataType.simpleString() if inner is None else outer_name(field.dataType)
        yield path, kind, field.metadata.get("comment", "")
        if inner is not None:
            yield from columns(inner, f"{path}.")


def struct_of(kind: DataType) -> StructType | None:
    """Returns a struct type itself, or the element type of an array of structs. Returns None for
    other types."""
    from pyspark.sql.types import ArrayType, StructType

    inner = kind.elementType if isinstance(kind, ArrayType) else kind
    return inner if isinstance(inner, StructType) else None


def outer_name(kind: DataType) -> str:
    """Returns the name of a nested type without its fields."""
    return "array of struct" if kind.typeName() == "array" else "struct"


def nodes(spark: SparkSession) -> dict[str, list[str]]:
    """Returns the metrics of each plan node that pyzorder adds."""
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        spark.sql(ROWS).repartition(4).write.parquet(f"{folder}/t")
        target = f"parquet.`{folder}/t`"
        spark.sql(f"CREATE SKIPPING INDEX ON {target}")
        for query in (f"SELECT b FROM {target} WHERE a = 7", f"SELECT count(*) FROM {target}"):
            plan = spark.sql(query)._jdf.queryExecution().sparkPlan()
            for node in walk(plan):
                if node.nodeName().startswith("ZOrder"):
                    metrics = elements(node.metrics().toSeq())
                    found[node.nodeName()] = sorted(pair._2().name().get() for pair in metrics)
    return found


def nodes_text(spark: SparkSession) -> str:
    """Returns a table with the metrics of each node."""
    rows = [[f"`{name}`", ", ".join(metrics)] for name, metrics in nodes(spark).items()]
    return table(["node", "metrics"], rows)


def walk(plan: Any) -> Iterator[Any]:
    """Yields all nodes of a plan."""
    yield plan
    for child in elements(plan.children()):
        yield from walk(child)


# ---- the JVM, and Markdown ----------------------------------------------------------------------


def jvm(spark: SparkSession) -> Any:
    """Returns the JVM of a classic session."""
    return spark.sparkContext._jvm


def elements(sequence: Any) -> list[Any]:
    """Returns the elements of a Scala Seq."""
    return [sequence.apply(number) for number in range(sequence.length())]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )
