"""How plans are chosen, and by what."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.errors import SessionError
from dovetail.engine.options.option import check_one_of, option
from dovetail.stats.catalog import StatsCatalog

GREEDY = "greedy"
JOINT = "joint"
NEVER = "never"
BY_COST = "by cost"
ALWAYS = "always"


@dataclass(frozen=True)
class Planning:
    """Probe orders and joins that are kept (docs/optimizer.md)."""

    optimizer: str = option(GREEDY, "`greedy` plans query by query, `joint` all of them together")
    keep_intermediates: str = option(
        NEVER,
        "joins of two or more streams as stores of their own, for queries of three and more: `never`, `by cost` (with"
        " `joint`, where they pay), `always`",
    )
    statistics: StatsCatalog | None = option(  # noqa: RUF009 - a field, as everywhere here
        None, "what is known of streams and joins before the first batch; in Python only", "what batches tell"
    )

    def __post_init__(self) -> None:
        check_one_of("optimizer", self.optimizer, (GREEDY, JOINT))
        check_one_of("keep_intermediates", self.keep_intermediates, (NEVER, BY_COST, ALWAYS))
        if self.keep_intermediates == BY_COST and self.optimizer != JOINT:
            raise SessionError(
                f"keep_intermediates is {BY_COST!r}, and the greedy optimizer knows no costs",
                hint=f"use optimizer={JOINT!r}, or keep_intermediates={NEVER!r}",
            )
