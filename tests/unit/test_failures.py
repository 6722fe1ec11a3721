"""Each exception is reported in one sentence and leads to the right exit code."""

from __future__ import annotations

import pytest

from pyzorder import errors
from pyzorder.failures import UNAVAILABLE, Interrupted, exit_code, sentence

# (the exception, the exit code, the sentence)
FAILURES: list[tuple[BaseException, int, str]] = [
    (ValueError("[ZORDER_CONFLICT] Too late. SQLSTATE: 40001"), 4, "[ZORDER_CONFLICT] Too late."),
    (ValueError("[ZORDER_CONCURRENT_OPTIMIZE] Wait."), 4, "[ZORDER_CONCURRENT_OPTIMIZE] Wait."),
    (
        ValueError("[A.B] No such\ntable.; line 1 pos 14;\n'Project [*]\n+- 'Unresolved"),
        1,
        "[A.B] No such table.",
    ),
    (ValueError("[X] Not this\n== SQL ==\nSELECT 1"), 1, "[X] Not this"),
    (
        ValueError("It stopped.\nThis stopped SparkContext was created at:\n\norg.apache.X(Y:1)"),
        1,
        "It stopped.",
    ),
    (ValueError("plain\n\tat org.x.Y(Z.scala:1)"), 1, "plain"),
    (errors.no_workload("t"), 1, str(errors.no_workload("t"))),
    *((errors.ZOrderError(condition, "No."), 3, f"[{condition}] No.") for condition in UNAVAILABLE),
    (Interrupted("Stopped."), 130, "Stopped."),
    (Interrupted("Stopped.", 15), 143, "Stopped."),
    (KeyError(), 1, "KeyError"),
]


@pytest.mark.parametrize(("raised", "code", "says"), FAILURES)
def test_failures(raised: BaseException, code: int, says: str) -> None:
    assert (exit_code(raised), sentence(raised)) == (code, says)
