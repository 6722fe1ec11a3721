"""Reads parts of Parquet files without decoding their rows.

footers        reads the statistics in the footers of data files
rules          decides which of these statistics are valid for the values that Spark reads
footer_checks  rejects footers that would make PyArrow end the process
pages          checks the pages of a snapshot before it is decoded
thrift         parses footers and page headers
"""
