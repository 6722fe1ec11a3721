"""Checks the pages of a snapshot's Parquet file before it is decoded.

Arrow decodes as many values as the page headers specify, regardless of the file's footer. Lists and
some encodings can expand a page of a few bytes to gigabytes.
"""

from __future__ import annotations

from typing import Any

from pyzorder.index.parquet import structs, thrift

#: The maximum size of a page before compression.
_LONGEST = 64 << 20

#: The maximum size of a page header. It may contain the page's bounds.
_LONGEST_HEADER = 64 << 10

#: Numbers from parquet.thrift: page types, and fields of PageHeader and of each page type's header.
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_TYPE, _SIZE, _STORED_SIZE = 1, 2, 3
_VALUES = 1
_HEADERS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_ENCODINGS = {_DATA: 2, _DICTIONARY: 2, _DATA_V2: 4}

#: PLAIN, PLAIN_DICTIONARY, RLE and RLE_DICTIONARY, which pyzorder's writers use. In other
#: encodings, a few bytes can represent many copies of a long string.
_KNOWN = {0, 2, 3, 8}


def decoded_size(data: bytes, chunk: Any) -> int | None:
    """Returns the size in bytes of a column chunk's decompressed pages. Returns None unless the
    chunk consists of pages of known kinds and has as many values as the file's footer states."""
    try:
        values, size = _contents(data, chunk)
    except (ValueError, LookupError, TypeError):  # a damaged header
        return None
    return size if values == chunk.num_values else None


def _contents(data: bytes, chunk: Any) -> tuple[int, int]:
    """Returns the number of values in a column chunk and the decompressed size of its pages, or
    raises if a page is damaged."""
    at = chunk.data_page_offset
    if 0 < (chunk.dictionary_page_offset or 0) < at:
        at = chunk.dictionary_page_offset
    end, values, total = at + chunk.total_compressed_size, 0, 0
    while at < end:
        page, length = thrift.parse(data[at : at + _LONGEST_HEADER], 0, structs.PAGE_HEADER)
        at += length
        kind, size = page[_TYPE], page[_SIZE]
        header = page[_HEADERS[kind]]
        is_sound = 0 <= size <= _LONGEST and header[_ENCODINGS[kind]] in _KNOWN
        if not is_sound or header[_VALUES] < 0 or page[_STORED_SIZE] < 0:
            raise ValueError("a page that pyzorder does not write")
        if kind != _DICTIONARY:
            values += header[_VALUES]
        elif header[_VALUES] > size:
            raise ValueError("a dictionary with more values than bytes")
        at += page[_STORED_SIZE]
        total += size
    return values, total
