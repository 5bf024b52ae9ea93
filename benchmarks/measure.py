"""Times of runs, and the steps that a person watches while they are taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console


@dataclass(frozen=True)
class RunTime:
    """One run of one system. `done_share` is the share of the input it got through before it was stopped."""

    seconds: float
    done_share: float = 1.0
    batch_ms: tuple[float, ...] = ()

    @property
    def is_finished(self) -> bool:
        return self.done_share >= 1.0


@dataclass(frozen=True)
class Timing:
    """Repeats of one run; the best counts, and the spread (its length: the number of repeats) is reported beside it."""

    runs: tuple[RunTime, ...]

    @property
    def best(self) -> RunTime:
        return min(self.runs, key=lambda run: (not run.is_finished, -run.done_share, run.seconds))

    @property
    def is_finished(self) -> bool:
        return self.best.is_finished

    @property
    def seconds(self) -> float:
        return self.best.seconds

    @property
    def finished_seconds(self) -> float | None:
        return round(self.seconds, 3) if self.is_finished else None

    @property
    def spread(self) -> list[float]:
        return sorted(round(run.seconds, 3) for run in self.runs)


def describe_timing(timing: Timing) -> str:
    times = ", ".join(f"{seconds:.2f}" for seconds in timing.spread)
    stopped = "" if timing.is_finished else f"; stopped, {timing.best.done_share:.0%} done"
    return f"{times} s{stopped}"


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed.

    >>> percentile([10, 20, 30, 40], 0.5)
    20
    """
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1)]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


class Steps:
    """Prints what runs now (live, on a terminal) and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        started = time.perf_counter()
        with self._console.status(f"{text} ..."):
            yield
        self._console.print(f"  {text}: [bold]{time.perf_counter() - started:.1f} s[/bold]", highlight=False)

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False)
