"""pyzorder without its jar: for clusters and Connect servers to which you cannot add one.

The index is the jar's, byte for byte, so that either reads what the other has written.

Reading stands on `pyzorder.index`, the format's reader, which knows no Spark. What happens, by the
names of the modules:

    SELECT    queries → query_tables, or reader → selection → index.predicates → statistics_frame
    indexes   indexing → statistics → index.snapshot_writer
    OPTIMIZE  optimize → sources → layout → placement → kd_tree
              → statistics → index.snapshot_writer → switch
"""

from pyzorder.fallback.indexing import create_index, refresh_index
from pyzorder.fallback.optimize import Optimized, optimize
from pyzorder.fallback.queries import explain, sql
from pyzorder.fallback.reader import TableReader, read
from pyzorder.fallback.selection import Selection

__all__ = [
    "Optimized",
    "Selection",
    "TableReader",
    "create_index",
    "explain",
    "optimize",
    "read",
    "refresh_index",
    "sql",
]
