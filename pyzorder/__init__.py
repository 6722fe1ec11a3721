"""Z-ordering and data skipping for plain Parquet and ORC tables in Spark."""

from pyzorder._version import __version__
from pyzorder.engines import dataset, files, scan_polars
from pyzorder.errors import ZOrderError
from pyzorder.explain import explain
from pyzorder.maintenance import maintain
from pyzorder.session import configure
from pyzorder.table import ZOrderTable

__all__ = [
    "ZOrderError",
    "ZOrderTable",
    "__version__",
    "configure",
    "dataset",
    "explain",
    "files",
    "maintain",
    "scan_polars",
]
