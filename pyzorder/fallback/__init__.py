"""pyzorder without its jar: for clusters and Connect servers that take no jar of yours.

Index and journal are those of the jar, byte for byte, so that both can work on the same tables.
"""

from pyzorder.fallback.indexing import create_index, refresh_index
from pyzorder.fallback.queries import explain, sql
from pyzorder.fallback.reader import TableReader, read
from pyzorder.fallback.selection import Selection

__all__ = [
    "Selection",
    "TableReader",
    "create_index",
    "explain",
    "read",
    "refresh_index",
    "sql",
]
