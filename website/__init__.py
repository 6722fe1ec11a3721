"""Builds the parts of the site that do not come from docs/. MkDocs calls this code (`make
docs`)."""
