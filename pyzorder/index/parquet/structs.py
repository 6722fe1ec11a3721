"""The structs of parquet.thrift that PyArrow parses, with the numbers and types of their fields."""

from __future__ import annotations

from pyzorder.index.parquet.thrift import BINARY, BOOL, DOUBLE, I16, I32, I64, Type

_EMPTY: dict[int, Type] = {}

_KEY_VALUE: dict[int, Type] = {1: BINARY, 2: BINARY}

_STATISTICS: dict[int, Type] = {
    1: BINARY, 2: BINARY, 3: I64, 4: I64, 5: BINARY, 6: BINARY, 7: BOOL, 8: BOOL,
}  # fmt: skip

_TIME_UNIT: dict[int, Type] = {1: _EMPTY, 2: _EMPTY, 3: _EMPTY}

_TIME: dict[int, Type] = {1: BOOL, 2: _TIME_UNIT}

#: The width of an integer is an I8, so it is not among the known fields.
_LOGICAL_TYPE: dict[int, Type] = {
    **dict.fromkeys((1, 2, 3, 4, 6, 11, 12, 13, 14, 15), _EMPTY),
    5: {1: I32, 2: I32},
    7: _TIME,
    8: _TIME,
    10: {2: BOOL},
    16: {},
    17: {1: BINARY},
    18: {1: BINARY, 2: I32},
}

_SCHEMA_ELEMENT: dict[int, Type] = {
    1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32, 6: I32, 7: I32, 8: I32, 9: I32, 10: _LOGICAL_TYPE,
}  # fmt: skip

_SIZE_STATISTICS: dict[int, Type] = {1: I64, 2: [I64], 3: [I64]}

_GEOSPATIAL: dict[int, Type] = {1: dict.fromkeys(range(1, 9), DOUBLE), 2: [I32]}

_COLUMN_META_DATA: dict[int, Type] = {
    1: I32, 2: [I32], 3: [BINARY], 4: I32, 5: I64, 6: I64, 7: I64, 8: [_KEY_VALUE], 9: I64, 10: I64,
    11: I64, 12: _STATISTICS, 13: [{1: I32, 2: I32, 3: I32}], 14: I64, 15: I32,
    16: _SIZE_STATISTICS, 17: _GEOSPATIAL,
}  # fmt: skip

_COLUMN_CHUNK: dict[int, Type] = {
    1: BINARY, 2: I64, 3: _COLUMN_META_DATA, 4: I64, 5: I32, 6: I64, 7: I32,
    8: {1: _EMPTY, 2: {1: [BINARY], 2: BINARY}}, 9: BINARY,
}  # fmt: skip

_ROW_GROUP: dict[int, Type] = {
    1: [_COLUMN_CHUNK], 2: I64, 3: I64, 4: [{1: I32, 2: BOOL, 3: BOOL}], 5: I64, 6: I64, 7: I16,
}  # fmt: skip

#: FileMetaData, without the fields of encrypted files.
FOOTER: dict[int, Type] = {
    1: I32, 2: [_SCHEMA_ELEMENT], 3: I64, 4: [_ROW_GROUP], 5: [_KEY_VALUE], 6: BINARY,
    7: [{1: _EMPTY}],
}  # fmt: skip

PAGE_HEADER: dict[int, Type] = {
    1: I32, 2: I32, 3: I32, 4: I32,
    5: {1: I32, 2: I32, 3: I32, 4: I32, 5: _STATISTICS},
    6: _EMPTY,
    7: {1: I32, 2: I32, 3: BOOL},
    8: {1: I32, 2: I32, 3: I32, 4: I32, 5: I32, 6: I32, 7: BOOL, 8: _STATISTICS},
}  # fmt: skip
