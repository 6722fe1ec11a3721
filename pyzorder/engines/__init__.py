"""Skips files of a table in engines other than Spark, without Spark and without Java.

The package reads the index and the journal through `pyzorder.index`. Its modules:

    api               files, dataset and scan_polars
    tables            the data files of a table, as Spark would list them
    staleness         the files that the index knows, without a listing
    partitions        partition columns from the names of folders
    file_statistics   the statistics of each file that hold for every engine
    selection         from a condition in SQL to the files that may match
    evaluation        evaluates the filters of `index.predicates` on statistics
    values            SQL values in Arrow, and their conversions
    matching_files    `pyzorder.files`
    guarantees        statistics as expressions of PyArrow
    arrow_dataset     `pyzorder.dataset`
    polars_filters    from a filter of Polars to a condition
    polars_source     `pyzorder.scan_polars`
    demo_lookups      the last step of `make demo`
"""

from pyzorder.engines.api import dataset, files, scan_polars

__all__ = ["dataset", "files", "scan_polars"]
