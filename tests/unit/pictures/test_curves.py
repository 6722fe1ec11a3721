"""A curve visits each cell of a grid once, in the order that defines the curve."""

from __future__ import annotations

import pytest

from pyzorder.pictures import curves


@pytest.mark.parametrize("bits", [1, 2, 3, 5])
def test_curves(bits: int) -> None:
    cells = [(x, y) for x in range(1 << bits) for y in range(1 << bits)]
    ways = {
        name: list(zip(*map(list, curves.cells(name, bits)), strict=True)) for name in curves.NAMES
    }
    assert all(sorted(way) == cells for way in ways.values())
    steps = zip(ways["hilbert"], ways["hilbert"][1:], strict=False)
    assert all(abs(x - u) + abs(y - v) == 1 for (x, y), (u, v) in steps)
    assert ways["linear"] == cells

    def interleaved(cell: tuple[int, int]) -> str:
        x, y = (f"{part:0{bits}b}" for part in cell)
        return "".join(a + b for a, b in zip(x, y, strict=True))

    assert ways["zorder"] == sorted(cells, key=interleaved)
