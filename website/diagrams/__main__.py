"""Redraws the diagrams in docs/ (`make diagrams`)."""

from __future__ import annotations

from website.diagrams import DRAWN

for path, draw in DRAWN.items():
    path.write_text(draw(), encoding="utf-8")
    print(path)
