"""A number and where it comes from; an assumption never passes for a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Origin(Enum):
    GIVEN = "given"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Estimate:
    value: float
    origin: Origin

    def __post_init__(self) -> None:
        if not self.value >= 0:
            raise ValueError(f"an estimate is not negative: {self.value}")
