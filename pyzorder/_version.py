"""The package's version. The build reads it, and sessions compare it with the jar's version."""

__version__ = "0.1.0"
