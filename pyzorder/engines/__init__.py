"""Skips files of a table in engines other than Spark. Needs neither Spark nor Java.

The package reads the index and the journal through `pyzorder.index`. Its modules:

    api               the functions files, dataset and scan_polars
    tables            finds the data files that Spark would list for a table
    staleness         finds the files in the index instead of listing them
    partitions        finds partition columns in the names of folders
    file_statistics   file statistics that are valid in every engine
    columns           finds the columns of a table, and checks the columns in a condition
    selection         finds the files that may contain rows matching a condition
    evaluation        evaluates the filters of `index.predicates` on statistics
    values            represents SQL values in Arrow and converts them
    matching_files    implements `pyzorder.files`
    guarantees        expresses statistics as PyArrow expressions
    arrow_dataset     implements `pyzorder.dataset`
    polars_filters    translates Polars filters into conditions
    polars_source     implements `pyzorder.scan_polars`
    indexing          `pyzorder index`
    demo_lookups      the last step of `make demo`
"""

from pyzorder.engines.api import dataset, files, scan_polars

__all__ = ["dataset", "files", "scan_polars"]
