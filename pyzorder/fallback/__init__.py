"""pyzorder without its jar, for clusters and Connect servers to which no jar can be added.

The index format does not depend on the jar, so an index written with the jar can be read without
it, and vice versa. The code that reads indexes builds on `pyzorder.index`, which does not depend on
Spark. The modules call each other as follows:

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
