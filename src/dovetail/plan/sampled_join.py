"""A join that nobody runs and the planner wants to know about: hop tasks estimate it from samples."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.plan.store_plan import IndexPlan


@dataclass(frozen=True)
class SampledJoin:
    """Rows of two stores meet where their indexes' keys are equal and `lower_us <= b's time - a's time <= upper_us`.

    `edge` is the name under which statistics keep the answer. A store that does not keep the index gets one built in
    memory for each of its buckets, once: as dear as an index, so ask for few of those at a time.
    """

    edge: str
    a_store: str
    a_index: IndexPlan
    b_store: str
    b_index: IndexPlan
    lower_us: int | None = None
    upper_us: int | None = None

    def __post_init__(self) -> None:
        if len(self.a_index.keys) != len(self.b_index.keys):
            raise ValueError(f"{self.edge}: both sides of a join have equally many keys")
        if self.lower_us is not None and self.upper_us is not None and self.lower_us > self.upper_us:
            raise ValueError(f"{self.edge}: no times lie between {self.lower_us} and {self.upper_us}")

    @property
    def is_timed(self) -> bool:
        return self.lower_us is not None or self.upper_us is not None
