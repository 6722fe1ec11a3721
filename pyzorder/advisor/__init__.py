"""Which columns to cluster a table by: pyzorder.advisor.advise.

`statements` and `event_log` read a workload, `workload` says what that is; `trial` lays candidates
out on a sample; `advice` is what comes of it.
"""

from __future__ import annotations

from pyzorder.advisor.advice import Advice
from pyzorder.advisor.trial import advise

__all__ = ["Advice", "advise"]
