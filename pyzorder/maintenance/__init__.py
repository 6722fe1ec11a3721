"""Maintains tables: decides for each table whether OPTIMIZE, REFRESH or VACUUM pays off, and runs
it."""

from pyzorder.maintenance.maintain import maintain
from pyzorder.maintenance.outcome import Outcome

__all__ = ["Outcome", "maintain"]
