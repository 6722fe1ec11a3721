"""Determines which files of a table a condition rules out."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyzorder.engines import failures, values
from pyzorder.engines.columns import check_columns
from pyzorder.engines.evaluation import Evaluator, evaluator_of
from pyzorder.engines.file_statistics import FileStatistics
from pyzorder.engines.partitions import PartitionColumn
from pyzorder.engines.sketch_lookups import SketchLookups
from pyzorder.engines.tables import Table
from pyzorder.engines.values import Value
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.predicates.conditions import NotUnderstood, Verbatim, conjuncts, parse
from pyzorder.index.predicates.index_filters import IndexFilters
from pyzorder.index.predicates.monotonic_functions import Found, Types
from pyzorder.index.snapshot_statistics import Flags

log = logging.getLogger(__name__)

#: Stands for an unknown time zone. No rule treats it as a zone with a fixed offset.
_UNKNOWN_ZONE = "unknown"

_NO_INDEX = "the table has no usable index: to create one, run 'pyzorder index'"

#: Conditions with more characters than this are truncated in messages.
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Selection:
    """The files of a table that may have rows for which a condition is TRUE.

    Attributes:
        kept: for each file, whether it may have such a row.
        unindexed: the number of files without an entry in the index.
        reasons: the parts of the condition that are not used to rule out files, and why.
    """

    kept: Flags
    unindexed: int
    reasons: tuple[str, ...] = ()


#: The errors of conditions that cannot be evaluated on statistics. The literals and arguments of a
#: condition may be such that Spark rejects it.
_NOT_EVALUATED = (
    NotUnderstood, pa.ArrowException, RecursionError, ArithmeticError, ValueError, IndexError
)  # fmt: skip


def parsed_condition(text: str) -> list[exp.Expression]:
    """Parses a condition, and returns the operands of its top-level AND.

    Raises:
        ZOrderError: the text is not a condition.
        NotUnderstood: sqlglot may read the text differently from Spark.
    """
    try:
        found = parse_one(text, dialect=Verbatim)
    except RecursionError:
        raise NotUnderstood("the condition is nested too deeply") from None
    except (SqlglotError, TypeError, ValueError, IndexError):
        raise failures.not_a_condition(text, "it cannot be parsed") from None
    if not isinstance(found, exp.Condition) or isinstance(found, (exp.Query, exp.Star)):
        raise failures.not_a_condition(text, f"it is a {found.key.upper()}")
    if any(not (node.expressions or node.args.get("query")) for node in found.find_all(exp.In)):
        raise failures.not_a_condition(text, "IN needs at least one value")
    return list(conjuncts(parse(text)))


def select_where(
    table: Table, where: str, time_zone: str | None = None, schema: pa.Schema | None = None
) -> Selection:
    """Selects the files that may have rows for which an SQL condition is TRUE, and logs which parts
    of the condition are not used to rule out files.

    Args:
        time_zone: the time zone for timestamps that do not specify one.
        schema: the columns that the caller reads, if known.

    Raises:
        ZOrderError: the text is not a condition, or refers to a column that the table does not
            have.
    """
    try:
        conditions = parsed_condition(where)
    except NotUnderstood as reason:
        found = replace(select_files(table, []), reasons=(f"{where}: {reason}",))
    else:
        check_columns(table, conditions, schema)
        found = select_files(table, conditions, time_zone)
    for said in found.reasons:
        log.info("%s is not used to skip files: %s", table.location, said)
    return found


def select_files(
    table: Table, conditions: Sequence[exp.Expression], time_zone: str | None = None
) -> Selection:
    """Selects the files that may have rows for which all conditions are TRUE.

    Args:
        time_zone: the time zone for timestamps that do not specify one.
    """
    statistics = FileStatistics(table)
    kept = np.ones(len(table.files), dtype=bool)
    kept &= np.asarray(statistics.num_records.fill_null(-1)) != 0
    names = _Names(statistics.columns, table.partitions)
    typing = evaluator_of(names.types, time_zone)
    types = Types(
        lambda texts: [typing.type_of(text) for text in texts],
        time_zone or _UNKNOWN_ZONE,
        False,
    )
    filters = IndexFilters(names.find, types)
    evaluator = Evaluator(_Frame(statistics, table.partitions), time_zone)

    def by_bounds(condition: exp.Expression) -> Flags:
        """Returns the files that bounds do not rule out. Afterwards, `evaluator.problems` explains
        why parts of the condition were ignored."""
        try:
            text = filters.of(condition)
            if text is None:
                raise NotUnderstood(names.problem or "no rule covers it")
            return _mask(evaluator.keeps(text), len(table.files))
        except _NOT_EVALUATED as reason:
            evaluator.problems.append(str(reason) or "the condition is nested too deeply")
            return np.ones(len(table.files), dtype=bool)

    reasons = [_NO_INDEX] if conditions and table.snapshot is None and table.files else []
    for condition in conditions:
        kept &= by_bounds(condition)
        if evaluator.problems and table.snapshot is not None:
            shown = _shown(condition)
            reasons += [f"{shown}: {said}" for said in evaluator.problems]
        names.problem = ""
        evaluator.problems.clear()
    lookups = SketchLookups(table, statistics, names.find, typing, by_bounds)
    for condition in conditions:
        kept = lookups.kept(condition, kept)
    return Selection(kept, int((~statistics.is_indexed).sum()), tuple(dict.fromkeys(reasons)))


def _shown(condition: exp.Expression) -> str:
    """Returns the text of a condition, truncated if it is long."""
    try:
        text = str(condition.sql("spark"))
    except RecursionError:
        return "a deeply nested condition"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _mask(found: Any, count: int) -> Flags:
    """Converts the result of a filter to flags.

    If the filter is undecided for a file, the file is kept.
    """
    if isinstance(found, pa.Scalar):
        return np.full(count, found.as_py() is not False)
    return np.asarray(found.fill_null(True), dtype=bool)


class _Names:
    """The columns that a condition may refer to.

    Partition columns come after the index's columns.
    """

    def __init__(
        self, columns: Sequence[IndexedColumn], partitions: Sequence[PartitionColumn]
    ) -> None:
        self._paths = [column.path for column in columns]
        self._first_partition = len(self._paths)
        self._paths += [(column.name,) for column in partitions]
        #: Why `find` last failed to resolve a name; empty if it has not failed.
        self.problem = ""
        data_types = [values.sql_name(column.data_type) for column in columns]
        data_types += [column.data_type for column in partitions]
        self.types = {
            path: values.of_type(data_type)
            for path, data_type in zip(self._paths, data_types, strict=True)
        }

    def find(self, parts: tuple[str, ...]) -> Found:
        """Resolves a name. Case matters only if there are several candidates.

        Raises:
            NotUnderstood: the index has no such column.
        """
        same = [n for n, path in enumerate(self._paths) if _lower(path) == _lower(parts)]
        number = next((n for n in same if n >= self._first_partition), None)
        if number is None:
            exact = [n for n in same if self._paths[n] == parts]
            if len(same) != 1 and len(exact) != 1:
                self.problem = f"the index has no statistics for {'.'.join(parts)}"
                raise NotUnderstood(self.problem)
            number = same[0] if len(same) == 1 else exact[0]
        quoted = (f"`{part.replace('`', '``')}`" for part in self._paths[number])
        return Found(number, ".".join(quoted))


class _Frame:
    """Provides the columns that filters refer to. Computes them when they are first needed."""

    def __init__(self, statistics: FileStatistics, partitions: Sequence[PartitionColumn]) -> None:
        self._statistics = statistics
        self._partitions = partitions
        self._known: dict[tuple[str, ...], Value] = {}

    def __call__(self, parts: tuple[str, ...]) -> Value:
        if parts not in self._known:
            number = int(parts[0][1:])
            beyond = number - len(self._statistics.columns)
            if beyond < 0:
                found = self._statistics.of_column(number)
            else:
                found = self._statistics.of_partition(number, self._partitions[beyond])
            self._known.update(found)
        return self._known[parts]


def _lower(parts: Sequence[str]) -> list[str]:
    return [part.lower() for part in parts]
