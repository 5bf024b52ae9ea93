"""Bugs that random scenarios must find: what they do not find, they do not guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.generators.scenarios import KINDS, random_scenario
from tests.support.keep_failures import failure_of

ENOUGH = 100
"""Scenarios of the right kinds: what a few runs of `make test` draw of them."""


@dataclass(frozen=True)
class Bug:
    """`becomes` makes the wrong thing of the right one, which is the attribute `name` of `owner`."""

    what: str
    owner: Any
    name: str
    becomes: Callable[[Any], Any]
    kinds: Sequence[str] = KINDS
    known: int = 0
    """A scenario that found it once: tried first, since it mostly still does."""

    def __str__(self) -> str:
        return self.what


MISPLANTED = (None, "AttributeError", "TypeError")
"""A bug that does not fit where it is planted is not found by anybody."""


def found_at(bug: Bug, count: int = ENOUGH) -> int | None:
    """The number of the first scenario that fails with the bug planted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bug.owner, bug.name, bug.becomes(getattr(bug.owner, bug.name)))
        seeds: tuple[int, ...] = (bug.known, *range(count))
        for seed in seeds:
            if failure_of(random_scenario(seed, bug.kinds)) not in MISPLANTED:
                return seed
    return None
