"""`python -m pyzorder`: the command line."""

from pyzorder.cli import main

if __name__ == "__main__":
    main()
