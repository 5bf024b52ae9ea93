"""A number and where it comes from; an assumption never passes for a measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Origin(Enum):
    """In the order of trust: what the user gave beats what was counted, and so on down."""

    GIVEN = "given"
    EXACT = "counted"
    ESTIMATED = "estimated"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Estimate:
    """`relative_error` is about two standard deviations, and only an estimated value has one.

    >>> print(Estimate(1234567.0, Origin.EXACT), Estimate(0.25, Origin.ESTIMATED, 0.1), sep="; ")
    1,234,567 (counted); 0.25 ±10% (estimated)
    """

    value: float
    origin: Origin
    relative_error: float = 0.0

    def __post_init__(self) -> None:
        if not self.value >= 0:
            raise ValueError(f"an estimate is not negative: {self.value}")
        if not self.relative_error >= 0:
            raise ValueError(f"an error is not negative: {self.relative_error}")
        if (self.origin is Origin.ESTIMATED) != (self.relative_error > 0):
            raise ValueError(f"a value that is {self.origin.value} cannot have an error of {self.relative_error}")

    def __str__(self) -> str:
        error = f" ±{self.relative_error:.0%}" if self.relative_error else ""
        return f"{number_text(self.value)}{error} ({self.origin.value})"


def product(estimates: Sequence[Estimate]) -> Estimate:
    """Of independent figures: known as little as the least known of them."""
    weakest = max((estimate.origin for estimate in estimates), key=list(Origin).index)
    error = math.hypot(*(estimate.relative_error for estimate in estimates))
    return Estimate(
        math.prod(estimate.value for estimate in estimates), weakest, error if weakest is Origin.ESTIMATED else 0.0
    )


def number_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
