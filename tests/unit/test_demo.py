"""Each query that `make demo` runs selects the share of rows that its name states."""

from __future__ import annotations

import re

from pyzorder import demo


def test_queries_cover_the_shares_they_name() -> None:
    lowest, highest = (0, 1000), (10_000, 3000)
    for query in demo.queries(lowest, highest):
        shares = []
        for column, low, high in zip(demo.COLUMNS, lowest, highest, strict=True):
            between = re.search(rf"{column} BETWEEN (\d+) AND (\d+)", query.predicate)
            if between:
                first, last = map(int, between.groups())
                assert low <= first <= last <= high
                shares.append((last - first) / (high - low))
        named = re.search(r"(\d+)%", query.name)
        assert bool(shares) == bool(named)
        if named:
            assert all(abs(share - int(named[1]) / 100) < 0.001 for share in shares), query


def test_files_are_counted_with_their_size() -> None:
    assert demo.files_of({"totalFiles": 1234, "totalSize": 5_000_000}) == "1,234 files (4.8 MiB)"
