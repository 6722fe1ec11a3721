"""The command `pyzorder`: app.py is its map, `pyzorder --help` what it can do."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line of this process, and ends it with the exit code that says how."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as missing:
        from pyzorder import errors

        print(f"Error: {errors.cli_missing(missing.name or 'a package')}", file=sys.stderr)
        raise SystemExit(3) from None
    from pyzorder.cli.app import app

    app(prog_name="pyzorder")
