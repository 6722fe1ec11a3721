"""Recommends clustering columns for a table: pyzorder.advisor.advise.

`workload` defines workloads, which `statements` and `event_log` read. `what_if` evaluates candidate
layouts on a sample. `advice` defines the result.
"""

from __future__ import annotations

from pyzorder.advisor.advice import Advice
from pyzorder.advisor.what_if import advise

__all__ = ["Advice", "advise"]
