"""What MkDocs makes the site of besides the pages in docs/ (`make docs`)."""
