"""Translates predicates into filters over an index's bounds. Both are SQL text.

Unsupported parts of a predicate are not used to skip files. The modules:

    conditions           parses SQL, and renders the supported part
    index_filters        builds the filter of a predicate
    monotonic_functions  functions that preserve the order of bounds
    bound_filters        comparisons with bounds
    null_filters         filters for predicates that may be NULL
"""
