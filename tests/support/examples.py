"""How many examples a hypothesis test draws: a multiple of the profile's, so that `make test-all` draws more."""

from __future__ import annotations

from hypothesis import settings


def examples(times: float = 1.0) -> settings:
    return settings(max_examples=int(times * settings().max_examples))
