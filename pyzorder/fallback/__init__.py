"""pyzorder without its jar: for clusters and Connect servers that take no jar of yours.

Index and journal are those of the jar, byte for byte, so that both can work on the same tables.

What happens, by the names of the modules:

    SELECT    queries → query_tables, or reader → selection → conditions → index_filters
              → order_keeping, bound_filters → facts ← snapshots
    indexes   indexing → statistics → index_store
    OPTIMIZE  optimize → choice → footers → rewrite → layout → placement → kd_tree
              → writer → run_files, run_records, lease → recovery
    VACUUM    vacuum → writer
"""

from pyzorder.fallback.indexing import create_index, refresh_index
from pyzorder.fallback.optimize import Optimized, optimize, recover
from pyzorder.fallback.queries import explain, sql
from pyzorder.fallback.reader import TableReader, read
from pyzorder.fallback.selection import Selection
from pyzorder.fallback.vacuum import vacuum

__all__ = [
    "Optimized",
    "Selection",
    "TableReader",
    "create_index",
    "explain",
    "optimize",
    "read",
    "recover",
    "refresh_index",
    "sql",
    "vacuum",
]
