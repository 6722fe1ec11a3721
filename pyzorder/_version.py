"""The package's version, read by the build and compared with the jar's."""

__version__ = "0.1.0"
