"""Reads the pointers to snapshots of the index (sql/FORMAT.md, section "Pointer")."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from pyzorder.index.coverage import Coverage, coverage_of
from pyzorder.index.journal import has_too_many_tokens
from pyzorder.index.stores import Store
from pyzorder.index.table_folder import TableFolder, is_id

#: The version of the format that pyzorder writes, and the latest that it can read.
FORMAT_VERSION = 2

_POINTER = re.compile(r"_v00([0-9]{18})\.json")
#: Versions must be less than this number.
GREATEST = 10**18 - 1

_DATA_FILE = re.compile(r"_snapshot-[^/]+")

_SEGMENT = re.compile(r"_sketch-([0-9]{1,18})-[0-9a-f-]+")

#: The maximum number of segments of a snapshot, and the maximum size of a segment in bytes.
_MOST_SEGMENTS, _LONGEST_SEGMENT = 64, 64 << 20

#: Maximum number of columns with statistics.
_MOST_COLUMNS = 10_000

#: The maximum size of a pointer in bytes. A pointer takes about 200 bytes per column.
_LONGEST_POINTER = 8 << 20


class Unusable(Exception):
    """The index cannot be used. The message gives the reason."""


class NewerFormat(Unusable):
    """The index was written by a later version of pyzorder."""


#: The first part of an expression's path, and the number of parts before those that name the
#: expression's input columns.
EXPRESSION = "zorder_expression"
_BEFORE_INPUTS = 4


@dataclass(frozen=True)
class IndexedColumn:
    """A leaf column with statistics.

    Attributes:
        path: the names from the top-level column down to the field.
        data_type: the type in Spark's JSON representation.
    """

    path: tuple[str, ...]
    data_type: Any

    @property
    def name(self) -> str:
        """The path in SQL notation. Different paths have different names."""
        return ".".join(_quoted(part) for part in self.path)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The table's columns from which an expression's values are computed; empty if this is a
        column of the data files instead of an expression."""
        is_expression = self.path[0] == EXPRESSION and len(self.path) > _BEFORE_INPUTS
        return self.path[_BEFORE_INPUTS:] if is_expression else ()

    @property
    def is_float(self) -> bool:
        """Whether values may be NaN. Bounds do not cover NaN."""
        return self.data_type in ("float", "double")


def _quoted(part: str) -> str:
    return f"`{part.replace('`', '``')}`" if "." in part or "`" in part else part


@dataclass(frozen=True)
class SegmentRef:
    """A pointer's reference to a segment of sketches.

    Attributes:
        file: the name of the segment's file, which is next to the pointer.
        length: the size of the segment in bytes.
        directory: the position of the directory, which extends to the end of the file.
        crc32: the CRC-32 of the directory.
    """

    file: str
    length: int
    directory: int
    crc32: int

    @property
    def is_sound(self) -> bool:
        """Whether the reference is within the limits of the format."""
        own_name = _SEGMENT.fullmatch(self.file)
        return bool(own_name) and 0 <= self.directory <= self.length <= _LONGEST_SEGMENT


@dataclass(frozen=True)
class Pointer:
    """The content of a pointer to a snapshot.

    Attributes:
        coverable_since: the last version whose writer added files without indexing them, or deleted
            or moved files. A listing that began before that version cannot provide coverage.
        sketches: the segments that contain the sketches of the files.
        sketched: the names of the columns for which writers add sketches of new files; None if
            these columns have not been chosen yet.
        lineage: an id that is drawn for the first snapshot of an index and copied to all later
            ones. Empty if an earlier version of pyzorder created the index.
    """

    folder: TableFolder
    version: int
    incarnation: str
    file: str
    length: int
    crc32: int
    num_files: int
    columns: tuple[IndexedColumn, ...]
    coverage: Coverage | None = None
    coverable_since: int = 0
    sketches: tuple[SegmentRef, ...] = ()
    sketched: tuple[str, ...] | None = None
    lineage: str = ""

    @property
    def name(self) -> str:
        return pointer_name(self.version)

    def to_json(self) -> str:
        """Returns the text of the pointer's file."""
        fields = {
            "formatVersion": FORMAT_VERSION,
            "version": self.version,
            "incarnation": self.incarnation,
            "lineage": self.lineage,
            "file": self.file,
            "length": self.length,
            "crc32": self.crc32,
            "numFiles": self.num_files,
            "columns": [{"path": list(c.path), "type": c.data_type} for c in self.columns],
            "coverableSince": self.coverable_since,
            **({"coverage": self.coverage.to_json()} if self.coverage is not None else {}),
            **({"sketches": [asdict(s) for s in self.sketches]} if self.sketches else {}),
            **({"sketched": list(self.sketched)} if self.sketched is not None else {}),
        }
        return json.dumps(fields, indent=2)


#: Writers read this many of the newest pointers. They keep ten, but a folder may contain more.
MOST_READ = 100


def versions(store: Store, folder: TableFolder) -> list[int]:
    """Returns the versions that have a pointer, in ascending order."""
    found = (_POINTER.fullmatch(name) for name in store.names(folder.index))
    return sorted(int(match[1]) for match in found if match and 0 < int(match[1]) < GREATEST)


def segment_version(name: str) -> int:
    """Returns the version of the snapshot for which a segment was written; 0 for other files."""
    found = _SEGMENT.fullmatch(name)
    return int(found[1]) if found else 0


def pointer_name(version: int) -> str:
    """Returns the file name of a pointer, such as `_v00000000000000000007.json` for version 7."""
    return f"_v{version:020d}.json"


def read_pointer(store: Store, folder: TableFolder, version: int) -> Pointer:
    """Reads the pointer of this version.

    Raises:
        Unusable: the pointer is in a newer format, or invalid.
        Exception: the pointer cannot be read or parsed.
    """
    data = store.read(f"{folder.index}/{pointer_name(version)}")
    if len(data) > _LONGEST_POINTER or has_too_many_tokens(data):
        raise Unusable("its pointer was not written by pyzorder")
    text = json.loads(data)
    written = int(text["formatVersion"])
    if not 1 <= written <= FORMAT_VERSION:
        raise (NewerFormat if written > FORMAT_VERSION else Unusable)(
            f"it has format version {written}, but this pyzorder reads versions up to "
            f"{FORMAT_VERSION}"
        )
    if not _DATA_FILE.fullmatch(text["file"]):
        raise Unusable(f"{text['file']} is not the name of a snapshot file")
    if not all(isinstance(c["type"], str) for c in text["columns"]):
        raise Unusable("a column's type is not atomic")
    if not all(isinstance(c["path"], list) and c["path"] for c in text["columns"]):
        raise Unusable("a column has no name")
    paths = [tuple(c["path"]) for c in text["columns"]]
    if len(paths) > _MOST_COLUMNS or len(set(paths)) < len(paths):
        raise Unusable("it has duplicate columns, or more columns than pyzorder supports")
    return Pointer(
        folder,
        int(text["version"]),
        str(text["incarnation"]),
        text["file"],
        int(text["length"]),
        int(text["crc32"]),
        int(text["numFiles"]),
        tuple(IndexedColumn(tuple(c["path"]), c["type"]) for c in text["columns"]),
        coverage_of(text),
        int(text.get("coverableSince") or 0),
        _segments(text),
        _sketched(text),
        str(text.get("lineage") or ""),
    )


def _segments(pointer: dict[str, Any]) -> tuple[SegmentRef, ...]:
    found = pointer.get("sketches")
    segments = (
        SegmentRef(str(s["file"]), int(s["length"]), int(s["directory"]), int(s["crc32"]))
        for s in (found if isinstance(found, list) else [])
    )
    return tuple(islice((s for s in segments if s.is_sound), _MOST_SEGMENTS))


def _sketched(pointer: dict[str, Any]) -> tuple[str, ...] | None:
    found = pointer.get("sketched")
    return tuple(map(str, found)) if isinstance(found, list) else None


def read_incarnation(store: Store, folder: TableFolder) -> str | None:
    """Returns the table's incarnation id, or None if there is no valid one."""
    try:
        text = store.read(folder.incarnation).decode(errors="replace").strip()
    except FileNotFoundError:
        return None
    return text if is_id(text) else None
