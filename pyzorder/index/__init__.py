"""Reads what pyzorder keeps beside a table's files, as sql/FORMAT.md describes it.

Neither Spark nor pandas is needed, so that any engine can build on this package; PyArrow is. By the
names of the modules:

    stores               the folders and files of a store
    table_folder         where in a table's folder everything of pyzorder's lies
    journal              the records of OPTIMIZE runs, and what is no record
    visible_files        a listing of the table, as the journal says it is to be read
    snapshots            the index: the latest pointer, and the rows it points to
    entries              one data file's row of the index
    snapshot_statistics  what the rows prove for a scan under given settings
    snapshot_writer      publishes the next snapshot
    predicates           a predicate in SQL text → a filter over the index's bounds
"""

from pyzorder.index.journal import JournalState
from pyzorder.index.snapshots import IndexedColumn, Snapshot, latest
from pyzorder.index.stores import ArrowStore, LocalStore, Store
from pyzorder.index.table_folder import TableFolder
from pyzorder.index.visible_files import VisibleFile, visible_files

__all__ = [
    "ArrowStore",
    "IndexedColumn",
    "JournalState",
    "LocalStore",
    "Snapshot",
    "Store",
    "TableFolder",
    "VisibleFile",
    "latest",
    "visible_files",
]
