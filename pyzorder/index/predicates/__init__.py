"""A predicate in SQL text → a filter over an index's bounds, in SQL text as well.

What is not understood restricts nothing. By the names of the modules:

    conditions           what of a text is understood, and what is left alone
    index_filters        a predicate's filter, put together of
    monotonic_functions  … functions that keep the order of bounds
    bound_filters        … comparisons with bounds
    null_filters         … and what can make it NULL
"""
