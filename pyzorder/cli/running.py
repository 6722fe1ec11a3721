"""Runs a statement in a thread, shows its progress, and stops it on Ctrl-C."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from pyzorder import bridge, errors
from pyzorder.cli.display import Display
from pyzorder.failures import Interrupted
from pyzorder.steps import Steps, watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

UNCHANGED = "Interrupted; nothing was changed."
"""The message for an interrupted command that only reads."""


def run(
    spark: SparkSession,
    statement: Callable[[], T],
    display: Display,
    what: str,
    stopped: str,
    deadline: float = math.inf,
) -> T:
    """Runs a statement and shows its steps as they progress.

    On SIGINT or SIGTERM, cancels the statement's jobs and waits until the statement has undone
    everything that it has not published. A second signal ends the process immediately.

    Args:
        what: the name of the statement, such as OPTIMIZE.
        stopped: the message for a statement that a signal stopped. It says what happened to the
            statement's work.
        deadline: when to cancel the statement, on the clock `time.monotonic`.

    Returns:
        The result of the statement.

    Raises:
        Interrupted: a signal arrived, even if the statement had already finished.
        Exception: the statement raised it.
    """
    failure: Exception | None = None

    def watch(steps: Steps, last: bool) -> None:
        if received or time.monotonic() > deadline:
            steps.cancel()
        display.show(steps.now(last))

    with signals(display, what) as received, display:
        try:
            result = watched(spark, statement, watch)
        except Exception as raised:
            failure = raised
    if failure is not None and bridge.is_jvm_gone(failure):
        failure = errors.jvm_gone(what)
        stopped = str(failure)
    if received:
        if failure is None:
            stopped = f"Interrupted, but {what} had already finished."
        elif bridge.is_connect(spark):
            stopped = f"Interrupted: the server was asked to stop {what} and undo its work."
        raise Interrupted(stopped, received[0])
    if failure is not None:
        raise failure
    return result


@contextmanager
def signals(display: Display, what: str) -> Iterator[list[int]]:
    """Provides a list that receives the number of the first SIGINT or SIGTERM.

    A second signal ends the process. Outside the main thread, signals cannot be handled and the
    list remains empty.
    """
    received: list[int] = []

    def arrived(number: int, frame: FrameType | None) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        display.say(f"Stopping {what} …")

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = {number: signal.signal(number, arrived) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
