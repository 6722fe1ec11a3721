"""Reads the files that pyzorder keeps in a table's folder. sql/FORMAT.md specifies their format.

The package needs PyArrow but neither Spark nor pandas, so any engine can build on it. Its modules:

    stores               access to folders and files
    fsspec_store         access to folders and files through fsspec
    table_folder         the layout of pyzorder's files in a table's folder
    journal              the records of the runs that rewrite a table
    visible_files        determines a table's data files from a listing and the journal
    snapshots            snapshots of the index, and the pointers to them
    coverage             describes which data files have rows in a snapshot
    entries              rows of the index, one per data file
    snapshot_statistics  the statistics of a snapshot that are valid for a scan's settings
    snapshot_writer      publishes snapshots
    parquet              reads the footers of Parquet files, and checks files before PyArrow does
    predicates           translates SQL predicates into filters over the index's bounds
"""

from pyzorder.index.journal import JournalState
from pyzorder.index.pointers import IndexedColumn
from pyzorder.index.snapshots import Snapshot, latest
from pyzorder.index.stores import ArrowStore, LocalStore, Store
from pyzorder.index.table_folder import TableFolder
from pyzorder.index.visible_files import VisibleFile, VisibleFiles, visible_files

__all__ = [
    "ArrowStore",
    "IndexedColumn",
    "JournalState",
    "LocalStore",
    "Snapshot",
    "Store",
    "TableFolder",
    "VisibleFile",
    "VisibleFiles",
    "latest",
    "visible_files",
]
