"""Translates predicates to filters over an index's bounds. Both are SQL text.

Parts of a predicate that are not understood skip no files. The modules:

    conditions           parses SQL, and writes back the supported part
    index_filters        builds the filter of a predicate
    monotonic_functions  functions that preserve the order of bounds
    bound_filters        comparisons with bounds
    null_filters         filters for predicates that may be NULL
"""
