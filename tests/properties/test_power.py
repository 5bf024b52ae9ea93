"""Random cases find planted bugs: what they do not find, they do not guard."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from dovetail.engine.state import EngineState
from dovetail.kernels.match import hash_keys
from dovetail.plan.store_plan import Retention
from dovetail.query.stream import Stream
from dovetail.store.bucket_file import BucketMeta
from tests.support.asserts import failure_of
from tests.support.generators.cases import DEFAULT_LIMITS, GROUPS, LONE_WINDOWS, CaseLimits, random_case

CASES = 200


def is_dead_a_second_early(self: Retention, max_time_us: int | None, watermarks: dict[str, int]) -> bool:
    if self.keep_us_by_stream is None or max_time_us is None:
        return False
    return all(s in watermarks and max_time_us + keep < watermarks[s] + 10**6 for s, keep in self.keep_us_by_stream)


def watermarks_without_lateness(self: EngineState, streams: Mapping[str, Stream]) -> dict[str, int]:
    return {name: time for name, time in self.max_time_us_by_stream.items() if name in streams}


def no_key_is_null(_columns: object) -> None:
    return None


@pytest.mark.parametrize(
    ("owner", "name", "bug", "limits"),
    [
        (Retention, "is_dead", is_dead_a_second_early, LONE_WINDOWS),
        (EngineState, "watermark_us_by_stream", watermarks_without_lateness, DEFAULT_LIMITS),
        (hash_keys, "_valid_mask", no_key_is_null, DEFAULT_LIMITS),
        (BucketMeta, "home_rows", property(lambda meta: meta.rows), GROUPS),
    ],
    ids=["rows expire too early", "lateness is forgotten", "NULL equals NULL", "copies are at home"],
)
def test_a_planted_bug_is_found(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, bug: object, limits: CaseLimits
) -> None:
    monkeypatch.setattr(owner, name, bug)
    assert "CaseFailed" in (failure_of(random_case(seed, limits)) for seed in range(CASES))
