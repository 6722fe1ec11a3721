"""Which columns to cluster a table by: pyzorder.advisor.advise.

`statements` and `event_log` read a workload, which `workload` describes; `what_if` lays candidates
out on a sample; `advice` is the result.
"""

from __future__ import annotations

from pyzorder.advisor.advice import Advice
from pyzorder.advisor.what_if import advise

__all__ = ["Advice", "advise"]
