"""The command-line tool `pyzorder`. See app.py for its commands."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command-line tool, and exits the process with the command's exit code."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as missing:
        from pyzorder import errors

        print(f"Error: {errors.cli_missing(missing.name or 'a package')}", file=sys.stderr)
        raise SystemExit(3) from None
    from pyzorder.cli.app import app

    app(prog_name="pyzorder")
