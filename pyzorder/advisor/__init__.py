"""Recommends the columns to cluster a table by: pyzorder.advisor.advise.

`statements` and `event_log` read a workload, as defined in `workload`. `what_if` evaluates
candidate layouts on a sample. `advice` defines the result.
"""

from __future__ import annotations

from pyzorder.advisor.advice import Advice
from pyzorder.advisor.what_if import advise

__all__ = ["Advice", "advise"]
