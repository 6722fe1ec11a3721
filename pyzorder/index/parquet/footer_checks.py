"""Rejects Parquet footers that would make PyArrow end the process.

If PyArrow reads rows from a damaged file, it raises an exception. But if it only reads a column's
properties from the footer, some errors in its C++ code do not become exceptions, and the process
ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from pyzorder.index.parquet import structs, thrift

#: The longest footer that is read, because it is parsed in Python. For each row group, a footer
#: takes about 1 MiB per 10,000 columns.
_LONGEST = 16 << 20

#: The longest footer of which only the schema is parsed. Most libraries parse the whole footer.
_LONGEST_BEFORE_SCHEMA = 256 << 20

_DAMAGED = "its Parquet footer is damaged"

#: The errors of code that parses damaged footers.
_DAMAGES = (ValueError, LookupError, TypeError, AttributeError)

#: Groups may be nested this deep. Some libraries use a recursive function for each level.
_DEEPEST = 500

_MAGIC = b"PAR1"

#: Field numbers from parquet.thrift.
_SCHEMA, _ROW_GROUPS, _CREATED_BY = 2, 4, 6
_TYPE, _TYPE_LENGTH, _REPETITION, _NAME, _CHILDREN = 1, 2, 3, 4, 5
_LOGICAL, _GEO, _CRS = 10, (17, 18), 1
_CHUNKS = 1
_META, _ENCRYPTION = 3, 8
_CHUNK_TYPE, _PATH, _CODEC, _STATISTICS, _SIZES = 1, 3, 4, 12, 16
_TEXT_BYTES, _REPETITIONS, _DEFINITIONS = 1, 2, 3
_BOUNDS = (1, 2, 5, 6)

_REQUIRED, _OPTIONAL, _REPEATED = range(3)
_CODECS = range(8)
_BYTE_ARRAY, _FIXED = 6, 7

#: The size of a value of each physical type, in the order of the types' numbers.
_WIDTHS = (1, 4, 8, 12, 4, 8, 0, 0)


class _Leaf(NamedTuple):
    """A column.

    Attributes:
        kind: the number of its physical type.
        width: the least size of a value in bytes.
        repetition: the greatest repetition level.
        definition: the greatest definition level.
    """

    kind: int
    width: int
    repetition: int
    definition: int


def readable(data: bytes) -> pa.Buffer:
    """Returns the end of a Parquet file in a form from which PyArrow can read the footer.

    Args:
        data: the bytes of the file, or at least those from the beginning of the footer.

    Raises:
        ArrowInvalid: the file has no footer, or its footer is damaged.
    """
    footer = _footer(data, _LONGEST)
    try:
        found, _ = thrift.parse(footer, 0, structs.FOOTER)
        is_sound = _is_sound(found)
    except _DAMAGES:
        is_sound = False
    if not is_sound:
        raise pa.ArrowInvalid(_DAMAGED)
    return pa.py_buffer(_MAGIC + footer)


def read(path: str) -> pa.Buffer:
    """Like `readable`, for the file at this path. Raises OSError if it cannot be read."""
    return readable(_end(path, _LONGEST))


def check_schema(path: str) -> None:
    """Checks that engines can read the schema of the file at this path. Does not check the rest of
    its footer.

    Raises:
        ArrowInvalid: the file has no footer, its footer is very long, or its schema is damaged.
        OSError: the file cannot be read.
    """
    footer = _footer(_end(path, _LONGEST_BEFORE_SCHEMA), _LONGEST_BEFORE_SCHEMA)
    try:
        found, _ = thrift.parse(footer, 0, structs.FOOTER, until=_SCHEMA)
        list(_leaves(found[_SCHEMA]))
    except _DAMAGES:
        raise pa.ArrowInvalid(_DAMAGED) from None


def _end(path: str, most: int) -> bytes:
    """The end of a file, from the beginning of its footer."""
    with open(path, "rb", opener=_without_waiting) as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - 8))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - 8 - min(length, most + 1)))
        return file.read()


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file. Does not wait for a writer if it is a named pipe, which cannot be read here."""
    return os.open(path, flags | os.O_NONBLOCK)


def _footer(data: bytes, most: int) -> bytes:
    """The footer at the end of the data, with its length and the magic bytes."""
    length = int.from_bytes(data[-8:-4], "little")
    if data[-4:] == _MAGIC and length > most:
        raise pa.ArrowInvalid(f"its footer is longer than {most} bytes")
    if data[-4:] != _MAGIC or length + 8 > len(data):
        raise pa.ArrowInvalid("it has no Parquet footer")
    return data[len(data) - 8 - length :]


def _is_sound(footer: dict[int, Any]) -> bool:
    leaves = list(_leaves(footer[_SCHEMA]))
    texts = [footer.get(_CREATED_BY, b"")]
    for element in footer[_SCHEMA]:
        logical = element.get(_LOGICAL, {})
        texts += [element[_NAME], *(logical.get(kind, {}).get(_CRS, b"") for kind in _GEO)]
    return all(map(_is_text, texts)) and all(
        len(group[_CHUNKS]) == len(leaves) and all(map(_is_sound_chunk, group[_CHUNKS], leaves))
        for group in footer[_ROW_GROUPS]
    )


def _leaves(schema: list[dict[int, Any]]) -> Iterator[_Leaf]:
    """The columns in a schema. The schema's elements are in depth-first order."""
    levels = [(schema[0].get(_CHILDREN, 0), 0, 0)]  # of each open group: the elements left, levels
    for element in schema[1:]:
        while levels[-1][0] == 0:
            levels.pop()
        left, repetition, definition = levels.pop()
        levels.append((left - 1, repetition, definition))
        repetition += element.get(_REPETITION) == _REPEATED
        definition += element.get(_REPETITION) in (_OPTIONAL, _REPEATED)
        if len(levels) > _DEEPEST:
            raise ValueError("groups are nested too deeply")
        if element.get(_CHILDREN):
            levels.append((element[_CHILDREN], repetition, definition))
        else:
            kind = element[_TYPE]
            width = element[_TYPE_LENGTH] if kind == _FIXED else _WIDTHS[kind]
            yield _Leaf(kind, width, repetition, definition)


def _is_text(data: bytes) -> bool:
    data.decode()  # raises ValueError if it is not UTF-8
    return True


def _is_sound_chunk(chunk: dict[int, Any], leaf: _Leaf) -> bool:
    meta = chunk[_META]
    sizes, statistics = meta.get(_SIZES, {}), meta.get(_STATISTICS, {})
    return (
        _ENCRYPTION not in chunk
        and all(map(_is_text, meta[_PATH]))
        and meta[_CHUNK_TYPE] == leaf.kind
        and meta[_CODEC] in _CODECS
        and len(sizes.get(_REPETITIONS, ())) in (0, leaf.repetition + 1)
        and len(sizes.get(_DEFINITIONS, ())) in (0, leaf.definition + 1)
        and (_TEXT_BYTES not in sizes or leaf.kind == _BYTE_ARRAY)
        and all(len(statistics[bound]) >= leaf.width for bound in _BOUNDS if bound in statistics)
    )
