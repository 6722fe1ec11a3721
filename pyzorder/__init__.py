"""Z-ordering and data skipping for plain Parquet and ORC tables in Spark."""

from pyzorder._version import __version__
from pyzorder.session import configure

__all__ = ["__version__", "configure"]
