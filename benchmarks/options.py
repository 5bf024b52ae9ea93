"""What a person can set about a benchmark run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from dovetail.core.errors import DovetailError

DEFAULT_TIME_LIMIT_S = 300.0
QUICK_TIME_LIMIT_S = 20.0


class BenchError(DovetailError):
    """A benchmark that cannot be run as asked, or whose systems failed."""


@dataclass(frozen=True)
class BenchOptions:
    """Options shared by all suites; None means the suite's own default.

    `rows` is the number of input rows of one run, over all streams. `time_limit_s` stops a peer's run
    (never ours): what was stopped is reported as stopped. `quick` makes every suite end within a minute,
    with figures that show that it works, not how fast it is. `scale` is TPC-H's, where a suite uses its tables. `only`
    names parts of a suite that has some, `batches` is the number that it measures of each; such a part is stopped
    after `time_limit_s`, too, and says so.
    """

    rows: int | None = None
    time_limit_s: float | None = None
    quick: bool = False
    cores: int = field(default_factory=lambda: os.cpu_count() or 1)
    repeats: int | None = None
    seed: int = 1
    scale: float | None = None
    only: tuple[str, ...] = ()
    batches: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise BenchError(f"{self.rows} rows cannot be measured", hint="give --rows a positive number")
        if self.time_limit_s is not None and self.time_limit_s <= 0:
            raise BenchError("a time limit must be positive", hint="give --time-limit some seconds")
        if self.cores < 1:
            raise BenchError("a benchmark needs a core", hint="give --cores 1 or more")
        if self.repeats is not None and self.repeats < 1:
            raise BenchError("a benchmark needs a repeat", hint="give --repeats 1 or more")
        if self.batches is not None and self.batches < 1:
            raise BenchError("a benchmark needs a batch", hint="give --batches 1 or more")
        if self.scale is not None and self.scale <= 0:
            raise BenchError("TPC-H has no such scale", hint="give --scale a positive number, e.g. 0.1")

    def rows_or(self, default: int, quick_default: int) -> int:
        return self.rows or (quick_default if self.quick else default)

    def scale_or(self, default: float, quick_default: float) -> float:
        return self.scale or (quick_default if self.quick else default)

    def repeats_or(self, default: int, quick_default: int = 1) -> int:
        return self.repeats or (quick_default if self.quick else default)

    @property
    def arguments_text(self) -> str:
        """The arguments of `dovetail bench` that make a run like this one, on any machine."""
        given = {
            "--rows": self.rows,
            "--time-limit": self.time_limit_s,
            "--repeats": self.repeats,
            "--scale": self.scale,
            "--batches": self.batches,
        }
        texts = [f"{name} {value:.12g}" for name, value in given.items() if value is not None]
        texts += [f"--only {part}" for part in self.only]
        return " ".join(texts if self.seed == 1 else [*texts, f"--seed {self.seed}"])

    @property
    def peer_time_limit_s(self) -> float:
        return self.time_limit_s or (QUICK_TIME_LIMIT_S if self.quick else DEFAULT_TIME_LIMIT_S)
