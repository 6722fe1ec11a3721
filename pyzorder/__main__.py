"""Runs the command-line tool as `python -m pyzorder`."""

from pyzorder.cli import main

if __name__ == "__main__":
    main()
