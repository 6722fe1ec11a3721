"""A layout has notes about files that a picture cannot show."""

from __future__ import annotations

import pytest

from pyzorder.layout import Layout
from tests.support.layouts import GRID, layout

# (files, the notes)
NOTES = [
    (GRID, []),
    (layout([((), (1, 2))] * 2), ["Not shown: 2 files with only nulls or NaN in a."]),
    (layout([((1, 2), None)]), ["Not shown: 1 file with unknown bounds for b."]),
    (
        layout([((1, 2), None), ((1, 2), (1, 2))], opened=frozenset({"file:/t/0"})),
        ["Not shown: 1 file with unknown bounds for b, 1 of them opened."],
    ),
]


@pytest.mark.parametrize(("files", "notes"), NOTES)
def test_notes(files: Layout, notes: list[str]) -> None:
    assert files.notes() == notes
