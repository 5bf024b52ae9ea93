"""What the demo shows of EXPLAIN: the parts of the shared plan with who uses them, and what sharing saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SharedPart:
    """A store or a step of the plan, the rows that it keeps or found in the last batch, and who uses it."""

    kind: str
    name: str
    rows: int
    queries: tuple[str, ...]


@dataclass(frozen=True)
class Saving:
    """What sharing saves of the work, and how often rows would be read without it."""

    share: float
    rows_read: int
    rows_read_alone: int

    def __str__(self) -> str:
        saved = f"saves {self.share:.0%} of the work" if self.share >= 0 else f"adds {-self.share:.0%} to the work"
        return f"sharing {saved}; {self.rows_read:,} rows a batch are read once, not {self.rows_read_alone:,}"


def saving_of(plan: Mapping[str, Any]) -> Saving | None:
    """None with one query, or before a batch has run by the plan."""
    work = plan["cost"]["measured"]
    if work is None or len(plan["queries"]) < 2:
        return None
    return Saving(work["saving_share"], work["rows_read"], work["rows_read_alone"])


def parts_of(plan: Mapping[str, Any]) -> tuple[SharedPart, ...]:
    stores = (
        SharedPart(
            "store", each["name"], int((each["rows"]["stored"] or {"value": 0})["value"]), tuple(each["queries"])
        )
        for each in plan["stores"]
    )
    steps = (part for probe in plan["probes"] for part in _steps(probe["steps"], f"new {probe['name']}"))
    return (*stores, *steps)


def _steps(steps: list[dict[str, Any]], start: str) -> Iterator[SharedPart]:
    for step in steps:
        keys = ", ".join(key["probing"] for key in step["lookup"]["keys"])
        found = (step["last_batch"] or {"found": 0})["found"]
        name = f"{start} → {step['lookup']['name']} by {keys}"
        yield SharedPart(f"step {step['member']}", name, found, tuple(step["queries"]))
        yield from _steps(step["steps"], f"{start} → {step['lookup']['name']}")
