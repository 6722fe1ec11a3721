"""The package's version. The build reads it, and sessions compare it with the jar's."""

__version__ = "0.1.0"
