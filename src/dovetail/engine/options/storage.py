"""What the checkpoint outlives."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.engine.options.option import check_one_of, option

POWER, PROCESS = "power", "process"


@dataclass(frozen=True)
class Storage:
    """How safe committed batches and accepted changes are (docs/guarantees.md)."""

    durability: str = option(
        POWER,
        "what commits and accepted changes outlive: a loss of `power`, or only the end of the `process`, for tests and"
        " for data that can be made again ([guarantees](guarantees.md#power-loss))",
    )

    def __post_init__(self) -> None:
        check_one_of("durability", self.durability, (POWER, PROCESS))

    @property
    def syncs(self) -> bool:
        return self.durability == POWER
