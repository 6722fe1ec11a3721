"""Builds the parts of the site that are not pages in docs/, for MkDocs (`make docs`)."""
