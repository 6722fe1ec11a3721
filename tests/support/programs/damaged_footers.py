"""Damages the footers of a data file and of its index many times, and reads them each time.

    python -m tests.support.programs.damaged_footers FOLDER SEED COUNT

FOLDER contains the file `a.parquet` and an index of it. Prints how often each file was read without
an error. PyArrow ends the process if it meets some of the errors that a footer can have.
"""

from __future__ import annotations

import json
import logging
import random
import sys
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from pyzorder.index.parquet.footers import FooterReader, columns_of
from pyzorder.index.snapshots import latest
from pyzorder.index.stores import LocalStore
from pyzorder.index.table_folder import TableFolder


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Changes one to three bytes of the footer, or repeats, moves or removes a part of it."""
    changed = bytearray(data)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(rng.choice([1, 1, 2, 3])):
        changed[rng.randrange(start, len(data) - 8)] = rng.choice([0, 1, 2, 3, 21, 255, *data[:4]])
    if rng.random() < 0.3:
        first = rng.randrange(start, len(data) - 8)
        part = changed[first : first + rng.randrange(1, 40)]
        place = rng.randrange(start, len(data) - 8)
        changed[place : place + rng.choice([0, len(part)])] = part
        changed[-8:-4] = (len(changed) - 8 - start).to_bytes(4, "little")
    return bytes(changed)


def main(folder: str, seed: str, count: str) -> None:
    logging.disable()
    rng = random.Random(int(seed))
    file, store = Path(folder) / "a.parquet", LocalStore()
    pointer = max((Path(folder) / "_zorder" / "_index").glob("_v*.json"))
    content = json.loads(pointer.read_text())
    snapshot = pointer.with_name(content["file"])
    columns = columns_of(str(file))
    rows, index = file.read_bytes(), snapshot.read_bytes()
    done: Counter[str] = Counter()
    for _ in range(int(count)):
        file.write_bytes(damaged(rows, rng))
        try:
            FooterReader(columns).read(str(file))
            columns_of(str(file))
            done["data file"] += 1
        except (OSError, pa.ArrowException):
            pass
        forged = damaged(index, rng)
        snapshot.write_bytes(forged)
        changed = {"crc32": zlib.crc32(forged), "length": len(forged)}
        pointer.write_text(json.dumps(content | changed))
        done["index"] += latest(store, TableFolder(folder)) is not None
    print(json.dumps(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
