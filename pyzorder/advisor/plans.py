"""Determines how physical plans in Spark's event logs read a table.

Plans show filters as the text of Spark's source filters, such as `EqualTo(a,7)`. The values are not
quoted, so they are interpreted according to the types in the scan's schema. Filters that are
missing from the text are counted as left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp, parse_one

from pyzorder.advisor.column_uses import uses_of
from pyzorder.advisor.query_scopes import DIALECT
from pyzorder.advisor.workload import (
    KEY,
    KeyJoin,
    NotUnderstood,
    Predicate,
    Reading,
    TableNames,
    Workload,
    same_path,
)

COMPARISONS = {
    "EqualTo": "=", "EqualNullSafe": "<=>", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
    "LessThan": "<", "LessThanOrEqual": "<=",
}  # fmt: skip
STRINGS = {"StringStartsWith": "startswith", "StringEndsWith": "endswith",
           "StringContains": "contains"}  # fmt: skip
NULLS = {"IsNull": "IS NULL", "IsNotNull": "IS NOT NULL"}
NAME = re.compile(
    r"(And|Or|Not|In|AlwaysTrue|AlwaysFalse|" + "|".join([*COMPARISONS, *STRINGS, *NULLS]) + r")\("
)
SCAN = re.compile(r"Scan (parquet|orc) ?(.*)")
JOIN = re.compile(r"BroadcastHashJoin \[(.*?)\], \[(.*?)\], (\w+), Build(Left|Right)")
NUMBERED = re.compile(r"[^\s\[\](),]+#\d+L?")
ATTRIBUTE = re.compile(r"([^\s\[\](),]+)#\d+L?")
CAST = re.compile(r"cast\((.+) as ([^()]+(?:\(.*\))?)\)")
RENAMED = "joins on keys that a plan computes or renames"

#: Nodes that process each row independently. Join keys can be pushed below them.
ROW_BY_ROW = ("Filter", "Project", "ZOrderSkipping", "ColumnarToRow", "InputAdapter",
              "WholeStageCodegen", "AdaptiveSparkPlan", "BroadcastQueryStage")  # fmt: skip


@dataclass(frozen=True)
class Scan:
    """A scan of files in a plan."""

    format: str
    table: tuple[str, ...]
    path: str
    types: dict[str, str]
    filters: str
    partition_filters: str
    data_filters: tuple[str, ...]
    """The attributes in the data filters, one element per occurrence."""

    attributes: frozenset[str]
    """The attributes that the scan reads, as far as the plan's text shows them."""

    def is_of(self, table: TableNames) -> bool:
        """Whether the scan reads the table's folder."""
        return same_path(self.path, table.path)

    def relation(self) -> str:
        """Returns the table's name for a FROM clause."""
        parts = self.table or (self.format, self.path)
        return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


@dataclass(frozen=True)
class Key:
    """A join, and the attribute that is its key, such as `b#10L`."""

    attribute: str
    join: KeyJoin


def readings_of(plan: dict[str, Any], table: TableNames, workload: Workload) -> list[Reading]:
    """Returns a plan's readings of the table, and counts the filters and joins that are left out.

    Args:
        plan: the `sparkPlanInfo` of an event.
    """
    return list(walk(plan, (), table, workload))


def walk(
    node: dict[str, Any], keys: tuple[Key, ...], table: TableNames, workload: Workload
) -> Iterator[Reading]:
    """Yields a reading for each scan of the table at or below a node.

    Args:
        keys: the join keys that are pushed down to the node.
    """
    scan = scan_of(node)
    if scan is not None and scan.is_of(table):
        joins = tuple(key.join for key in keys if key.attribute in scan.attributes)
        yield Reading(tuple(predicates_of(scan, workload)), joins)
    children = node.get("children", [])
    match = JOIN.match(node.get("simpleString", ""))
    if match is None or len(children) < 2:
        keep = node.get("nodeName", "").split(" (")[0] in ROW_BY_ROW
        for child in children:
            yield from walk(child, keys if keep else (), table, workload)
        return
    left, right, kind, build = match.groups()
    scanned = 1 if build == "Left" else 0
    pairs = (right, left) if build == "Left" else (left, right)
    own: tuple[Key, ...] = ()
    if kind == "Inner" or (kind == "LeftSemi" and scanned == 0):
        try:
            own = keys_of(pairs, children[1 - scanned])
            below = [s.attributes for s in scans_below(children[scanned])]
            if any(not any(key.attribute in a for a in below) for key in own):
                raise NotUnderstood(RENAMED)
        except NotUnderstood as failure:
            if any(s.is_of(table) for s in scans_below(children[scanned])):
                workload.leave_out(str(failure), node["simpleString"])
    for i, child in enumerate(children):
        side = "Left" if i == 0 else "Right"
        through = kind == "Inner" or (
            side == "Left" and kind in ("LeftSemi", "LeftAnti", "LeftOuter")
        )
        passed = keys if through or (side == "Right" and kind == "RightOuter") else ()
        yield from walk(child, (*passed, *own) if i == scanned else passed, table, workload)


def keys_of(pairs: tuple[str, str], built: dict[str, Any]) -> tuple[Key, ...]:
    """Returns the join keys of the scanned side.

    Each comes with a query for the values of the matching key on the broadcast side.

    Raises:
        NotUnderstood: the plan does not show the keys.
    """
    query, is_filtered = query_of(built)
    found = []
    for ours, theirs in zip(*(split_keys(text) for text in pairs), strict=True):
        attribute, column = key_of(ours)
        text = f"SELECT {key_of(theirs)[1]} AS {KEY} FROM {query}" if is_filtered else ""
        found.append(Key(attribute, KeyJoin(column, text, True)))
    return tuple(found)


def key_of(text: str) -> tuple[str, str]:
    """Returns the attribute of a join key, such as `b#10L`, and the key as SQL.

    Raises:
        NotUnderstood: the key is neither an attribute nor a cast of one.
    """
    match = ATTRIBUTE.fullmatch(text)
    if match is not None:
        return text, quoted(match.group(1))
    cast = CAST.fullmatch(text)
    if cast is None:
        raise NotUnderstood(RENAMED)
    attribute, column = key_of(cast.group(1))
    return attribute, f"CAST({column} AS {cast.group(2)})"


def split_keys(text: str) -> list[str]:
    """Splits the keys of a join at commas that are outside parentheses."""
    return re.split(r", (?=[^()]*(?:\(|$))", text)


def query_of(node: dict[str, Any]) -> tuple[str, bool]:
    """Returns one side of a join as SQL that can follow FROM, and whether that side has filters.

    Raises:
        NotUnderstood: the side is not a single scan, or the plan does not show its filters.
    """
    below = node
    while (scan := scan_of(below)) is None:
        name = below.get("nodeName", "").split(" (")[0]
        if len(below.get("children", [])) != 1 or name not in (*ROW_BY_ROW, "BroadcastExchange"):
            raise NotUnderstood("joins whose other side is not a single filtered table in the plan")
        below = below["children"][0]
    predicates = list(predicates_of(scan, None))
    parts = [p.sql for p in predicates]
    where = " WHERE " + " AND ".join(f"({part})" for part in parts) if parts else ""
    return scan.relation() + where, bool(parts)


def scans_below(node: dict[str, Any]) -> Iterator[Scan]:
    """Yields all scans of files at or below a node."""
    scan = scan_of(node)
    if scan is not None:
        yield scan
    for child in node.get("children", []):
        yield from scans_below(child)


def scan_of(node: dict[str, Any]) -> Scan | None:
    """Returns the scan that a node represents, or None if the node does not scan Parquet or ORC."""
    match = SCAN.fullmatch(node.get("nodeName", ""))
    metadata = node.get("metadata", {})
    location = re.search(r"\[(.*?)[,\]]", metadata.get("Location", ""))
    if match is None or location is None:
        return None
    return Scan(
        match.group(1),
        tuple(part for part in match.group(2).split(".") if part),
        location.group(1),
        dict(fields_of(metadata.get("ReadSchema", ""))),
        metadata.get("PushedFilters", "[]"),
        metadata.get("PartitionFilters", "[]"),
        tuple(re.findall(NUMBERED, metadata.get("DataFilters", ""))),
        frozenset(
            re.findall(NUMBERED, node.get("simpleString", "") + metadata.get("DataFilters", ""))
        ),
    )


def fields_of(schema: str) -> Iterator[tuple[str, str]]:
    """Yields the name and type of each column in text such as `struct<a:int,b:decimal(7,2)>`."""
    depth, start = 0, 0
    body = schema.removeprefix("struct<").removesuffix(">") + ","
    for i, letter in enumerate(body):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0 and i > start:
            name, _, kind = body[start:i].partition(":")
            yield name, kind
            start = i + 1


def predicates_of(scan: Scan, workload: Workload | None) -> Iterator[Predicate]:
    """Yields the filters of a scan, and counts the filters that the plan's text does not show.

    Raises:
        NotUnderstood: `workload` is None, and some filters are not shown.
    """

    def leave_out(reason: str, text: str) -> None:
        if workload is None:
            raise NotUnderstood(reason)
        workload.leave_out(reason, text)

    told = 0
    for part in parts_of(scan.filters[1:-1]):
        if part.startswith("IsNotNull("):  # Spark adds IsNotNull to every comparison
            told += 1
            continue
        try:
            sql = sql_of(part, scan.types)
        except NotUnderstood as failure:
            leave_out(f"filters in physical plans: {failure}", part)
            continue
        tree = parse_one(sql, dialect=DIALECT)
        told += sum(1 for _ in tree.find_all(exp.Column))
        yield Predicate(sql, tuple(uses_of(tree)))
    if len(scan.data_filters) > told:
        leave_out("filters that a plan shows only in part", scan.filters)
    if scan.partition_filters not in ("[]", ""):
        leave_out("filters in physical plans on partition columns", scan.partition_filters)


def parts_of(text: str) -> list[str]:
    """Splits a comma-separated list of filters, whose values may contain commas."""
    starts = [m.start() for m in NAME.finditer(text) if text[: m.start()].endswith(", ")]
    edges = [0, *(s for s in starts if is_closed(text[:s].removesuffix(", "))), len(text) + 2]
    return [text[a : b - 2] for a, b in zip(edges, edges[1:], strict=False) if text[a : b - 2]]


def is_closed(text: str) -> bool:
    """Whether every parenthesis is closed."""
    return text.count("(") <= text.count(")")


def sql_of(text: str, types: dict[str, str]) -> str:
    """Converts a source filter, such as `Or(EqualTo(a,7),IsNull(b))`, to SQL.

    Raises:
        NotUnderstood: the kind of filter is not supported, or the type of a column is unknown.
    """
    match = NAME.match(text)
    if match is None or not text.endswith(")"):
        raise NotUnderstood("the filter has an unknown structure")
    name, body = match.group(1), text[match.end() : -1]
    if name in ("And", "Or"):
        for cut in (m.start() for m in NAME.finditer(body) if m.start() > 0):
            left, right = body[: cut - 1], body[cut:]
            if body[cut - 1] == "," and is_closed(left):
                return f"({sql_of(left, types)} {name.upper()} {sql_of(right, types)})"
        raise NotUnderstood("the filter has an unknown structure")
    if name == "Not":
        return f"(NOT {sql_of(body, types)})"
    if name in ("AlwaysTrue", "AlwaysFalse"):
        return name.removeprefix("Always").lower()
    if name in NULLS:
        return f"{quoted(body)} {NULLS[name]}"
    column, _, value = body.partition(",")
    kind = types.get(column)
    if kind is None:
        raise NotUnderstood("the plan does not show the type of a column")
    if name == "In":
        values = value.strip().removeprefix("[").removesuffix("]").split(",")
        return f"{quoted(column)} IN ({', '.join(literal(v, kind) for v in values)})"
    if name in STRINGS:
        return f"{STRINGS[name]}({quoted(column)}, {literal(value, kind)})"
    return f"{quoted(column)} {COMPARISONS[name]} {literal(value, kind)}"


def quoted(column: str) -> str:
    """Quotes a column name from a plan for use in SQL, unless it is already quoted."""
    return column if column.startswith("`") else f"`{column}`"


def literal(value: str, kind: str) -> str:
    """Converts a value in a plan to an SQL literal of the given type.

    Raises:
        NotUnderstood: the type is binary, whose values plans do not show.
    """
    if kind == "binary":
        raise NotUnderstood("the plan does not show binary values")
    text = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'" if kind == "string" else f"CAST('{text}' AS {kind})"
