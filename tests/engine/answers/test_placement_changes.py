"""A running session takes over other placements and other numbers of partitions at batch edges, and moves nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from dovetail.optimizer.policies import GivenPolicies
from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("v", pa.int64())])
SQL = "SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y"
EVEN = Placements(even_placement(8, 2))
CROSSED = Placement((0, 1) * 4, 2)
Tables = dict[str, pa.Table]


class Chosen:
    """A policy that returns what the test says, and remembers what it was asked with."""

    def __init__(self, now: Placements = EVEN) -> None:
        self.now = now
        self.ran: list[Placements | None] = []

    def __call__(self, _plan: SharedPlan, _stats: StatsCatalog, running: Placements | None) -> Placements:
        self.ran.append(running)
        return self.now


class Feed:
    """Batches over three streams; pairs are counted by brute force."""

    def __init__(self, folder: Path, policy: Chosen | None = None, **options: Any) -> None:
        self.session = LocalSession(folder, small_batch_rows=0, **options)
        self.session.engine.plans.follow(lambda _batch: GivenPolicies(placement=policy))
        for name in "abc":
            self.session.create_stream(name, SCHEMA)
        self._rng = Random(5)
        self._pushed: list[Tables] = []

    def push(self, batches: int = 1) -> None:
        for _ in range(batches):
            self._pushed.append({name: self._rows() for name in "abc"})
            self.session.push(self._pushed[-1], splits=2)

    @property
    def plan(self) -> SharedPlan:
        return self.session.engine.plans.planned().plan

    @property
    def progress(self) -> dict[str, Any]:
        return self.session.progress or {}

    def check_answers(self) -> None:
        rows = {name: pa.concat_tables([each[name] for each in self._pushed]).to_pylist() for name in "abc"}
        expected = Counter(
            (a["v"], b["v"], c["v"])
            for a in rows["a"]
            for b in rows["b"]
            if a["x"] == b["x"]
            for c in rows["c"]
            if b["y"] == c["y"]
        )
        answers = self.session.results("q").to_pydict()
        assert Counter(zip(answers["av"], answers["bv"], answers["cv"], strict=True)) == expected

    def _rows(self) -> pa.Table:
        columns = {name: [self._rng.randrange(12) for _ in range(20)] for name in ("x", "y")}
        return pa.table({**columns, "v": [self._rng.randrange(1000) for _ in range(20)]}, SCHEMA)


def joined(folder: Path, policy: Chosen, **options: Any) -> Feed:
    feed = Feed(folder, policy, **options)
    feed.session.create_query(SQL, "q")
    feed.push(2)
    return feed


def test_another_placement_is_a_new_epoch_with_the_same_trees(tmp_path: Path) -> None:
    policy = Chosen()
    feed = joined(tmp_path, policy, replan=False)
    before = feed.plan
    policy.now = Placements.of(EVEN.usual, {("b", "[x]"): CROSSED, ("a", "[x]"): CROSSED})
    feed.push()
    after = feed.plan
    assert after.epoch == before.epoch + 1
    assert after.trees is before.trees
    assert after.stores is before.stores
    assert after.placements == policy.now
    (change,) = feed.session.engine.plans.changes
    assert change.reasons == (
        "4 of 8 key groups of a[x] are placed anew",
        "4 of 8 key groups of b[x] are placed anew",
    )
    feed.push(2)
    assert feed.plan.epoch == after.epoch, "what stays is no change"
    feed.check_answers()


def test_the_usual_placement_is_that_of_all_other_uses(tmp_path: Path) -> None:
    policy = Chosen()
    feed = joined(tmp_path, policy)
    policy.now = Placements(CROSSED)
    feed.push()
    assert feed.session.engine.plans.changes[-1].reasons == ("4 of 8 key groups are placed anew",)
    feed.check_answers()


@pytest.mark.parametrize("partitions", [1, 5, 11])
def test_partitions_come_and_go_at_a_batch_edge(tmp_path: Path, partitions: int) -> None:
    """More of them than key groups are allowed: some have nothing to do then."""
    policy = Chosen()
    feed = joined(tmp_path, policy, merge_fanout=2)
    policy.now = Placements(even_placement(8, partitions))
    feed.push(2)
    assert len(feed.progress["work"]["partitions"]) == partitions
    noun = "partition" if partitions == 1 else "partitions"
    assert feed.session.engine.plans.changes[-1].reasons == (f"{partitions} {noun} instead of 2",)
    policy.now = EVEN
    feed.push(2)
    assert len(feed.progress["work"]["partitions"]) == 2
    feed.check_answers()


def test_a_change_writes_and_moves_nothing_but_the_new_rows(tmp_path: Path) -> None:
    policy = Chosen()
    feed = joined(tmp_path, policy, merge_fanout=100)
    stored = {meta.path for meta in feed.session.engine.head.state.buckets}
    policy.now = Placements.of(even_placement(8, 4), {("a", "[x]"): Placement((3, 2, 1, 0) * 2, 4)})
    feed.push()
    assert stored < {meta.path for meta in feed.session.engine.head.state.buckets}
    assert feed.progress["written"]["numRows"] == 3 * 20
    feed.check_answers()


def test_a_policy_is_told_what_runs_and_begins_anew_after_a_restart(tmp_path: Path) -> None:
    policy = Chosen(Placements(CROSSED))
    feed = joined(tmp_path, policy)
    assert policy.ran[0] is None
    assert set(policy.ran[1:]) == {Placements(CROSSED)}
    feed.session.close()
    again = Chosen()
    reopened = Feed(tmp_path, again)
    reopened.push()
    assert again.ran[0] is None
    assert reopened.plan.placements == EVEN


def test_placements_of_uses_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    by_use = {("a", "[x]"): CROSSED, ("a", "[v]"): CROSSED, ("z", "[x]"): CROSSED}
    feed = joined(tmp_path, Chosen(Placements.of(EVEN.usual, by_use)))
    assert feed.plan.placements == Placements(EVEN.usual, (("a", "[x]", CROSSED),))


def test_the_number_of_key_groups_stays(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="16 key groups are placed of 8"):
        joined(tmp_path, Chosen(Placements(even_placement(16, 2))))


def test_without_a_policy_key_groups_are_spread_evenly(tmp_path: Path) -> None:
    feed = Feed(tmp_path, partitions=3)
    feed.session.create_query(SQL, "q")
    feed.push(2)
    assert feed.plan.placements == Placements(even_placement(8, 3))
    feed.check_answers()
