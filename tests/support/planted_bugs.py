"""Bugs that random scenarios must find: what they do not find, they do not guard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.generators.scenarios import KINDS, random_scenario
from tests.support.keep_failures import failure_of

ENOUGH = 100
"""Scenarios of the right kinds: about what one run of `make test` draws of them in some days."""


@dataclass(frozen=True)
class Bug:
    """`becomes` makes the wrong thing of the right one, which is the attribute `name` of `owner`."""

    what: str
    owner: Any
    name: str
    becomes: Callable[[Any], Any]
    kinds: Sequence[str] = KINDS

    def __str__(self) -> str:
        return self.what


def found_at(bug: Bug, count: int = ENOUGH) -> int | None:
    """The number of the first scenario whose answers are wrong with the bug planted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bug.owner, bug.name, bug.becomes(getattr(bug.owner, bug.name)))
        for seed in range(count):
            if failure_of(random_scenario(seed, bug.kinds)) == "CaseFailed":
                return seed
    return None
