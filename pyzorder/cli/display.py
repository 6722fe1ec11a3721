"""Shows the progress of a statement on stderr: lines about each step and, on a terminal, a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from pyzorder.steps import Step


class Display:
    """A context manager that shows steps, or shows nothing if `quiet`."""

    def __init__(self, title: str, quiet: bool, clock: Callable[[], float] = time.monotonic):
        self._console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self._clock = clock
        self._began: dict[int, float] = {}
        self._told: set[int] = set()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[said]}"),
            console=self._console,
            transient=True,
            disable=quiet or not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None, said="")

    def __enter__(self) -> Display:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        """Prints a line that later updates do not overwrite."""
        self._console.print(text, markup=False)

    def show(self, steps: Iterable[Step]) -> None:
        """Shows the steps that have begun, progressed or ended.

        Prints a line when a step begins or, on a terminal, updates the bar. Prints another line
        when a step has ended.
        """
        for step in steps:
            first = step.number not in self._began
            began = self._began.setdefault(step.number, self._clock())
            elapsed = self._clock() - began
            if step.running:
                if first and self._bar.disable:
                    self.say(f"{step.title} …")
                said = " · ".join([*counts(step), *time_left(step.share, elapsed)])
                self._bar.update(
                    self._task, description=step.title, total=1.0, completed=step.share, said=said
                )
            elif step.number not in self._told:
                self._told.add(step.number)
                self.say(f"{step.title}: " + ", ".join([*counts(step), f"{elapsed:.1f} s"]))


def counts(step: Step) -> list[str]:
    """Formats the counts of a step: its rows, and its files or tasks."""
    (done, every), things = (step.files, "file") if step.files else (step.tasks, "task")
    things += "" if every == 1 else "s"
    of = f"{done:,} {things}" if done == every else f"{done:,} of {every:,} {things}"
    return [f"{step.rows:,} rows", of] if step.rows else [of]


def time_left(share: float, elapsed: float) -> list[str]:
    """Estimates a step's remaining time from its progress, unless it is too early to tell."""
    if not 0 < share < 1 or elapsed < 1:
        return []
    seconds = round(elapsed / share - elapsed)
    return [f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"]
