"""Placements follow data that turn: once, not with every noise, and without losing or doubling a pair."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.core.errors import SessionError
from dovetail.engine.explain.explain import explain_plan
from dovetail.engine.options import make_options
from dovetail.engine.planning.seek_placement import PlacingRules
from dovetail.kernels.match.hash_keys import group_of_codes, hash_keys
from dovetail.optimizer.policies import GivenPolicies
from dovetail.plan.key_classes import key_classes
from dovetail.plan.placement import Placement, Placements, even_placement
from dovetail.plan.shared_plan import SharedPlan
from dovetail.stats.catalog import StatsCatalog
from dovetail.testing.local_session import LocalSession

SCHEMA = pa.schema([("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
NEAR = "BETWEEN o.ts - INTERVAL 1 SECOND AND o.ts + INTERVAL 1 SECOND"
BY_X = f"SELECT a.x FROM a JOIN b o ON a.x = o.x AND a.ts {NEAR}"
BY_Y = f"SELECT a.y FROM a JOIN c o ON a.y = o.y AND a.ts {NEAR}"
ROWS, KEYS = 400, 48
Keys = dict[str, np.ndarray[Any, np.dtype[np.int64]]]


class Feed:
    """Batches of one second each; no two are within a second, so pairs are counted by brute force."""

    def __init__(self, folder: Path, **options: Any) -> None:
        given = {"partitions": 4, "key_groups": 64, "exchange": "rows", **options}
        self.session = LocalSession(folder, **given)
        for stream in ("a", "b", "c"):
            self.session.create_stream(stream, SCHEMA, event_time="ts")
        self.session.create_query(BY_X, "by_x")
        self.session.create_query(BY_Y, "by_y")
        if self.session.engine.plans.placer is not None:
            self.session.engine.plans.placer.rules = PlacingRules(least_rows=0)
        self._rng = np.random.default_rng(3)
        self._seconds = 0
        self._expected = {"by_x": 0, "by_y": 0}

    def push(self, keys_of: Callable[[np.random.Generator], Keys], batches: int, *, rows: int = ROWS) -> None:
        for _ in range(batches):
            tables, counts = {}, {}
            for stream in ("a", "b", "c"):
                keys = {name: values[:rows] for name, values in keys_of(self._rng).items()}
                times = pa.array(np.full(len(keys["x"]), self._seconds * 10_000_000)).cast(SCHEMA.field("ts").type)
                tables[stream] = pa.table({**keys, "ts": times}, SCHEMA)
                counts[stream] = {name: np.bincount(values, minlength=KEYS) for name, values in keys.items()}
            self.session.push(tables, splits=2)
            self._seconds += 1
            self._expected["by_x"] += int(counts["a"]["x"] @ counts["b"]["x"])
            self._expected["by_y"] += int(counts["a"]["y"] @ counts["c"]["y"])

    def assert_exact(self) -> None:
        assert {name: self.session.results(name).num_rows for name in self._expected} == self._expected

    @property
    def placement(self) -> dict[str, Any]:
        entry: dict[str, Any] = (self.session.progress or {})["placement"]
        return entry

    @property
    def copies_a_row(self) -> float:
        shipped = (self.session.progress or {})["shipped"]
        return float(shipped["rows"] / shipped["inputRows"])


def apart(rng: np.random.Generator) -> Keys:
    return {"x": rng.integers(0, KEYS, ROWS), "y": rng.integers(0, KEYS, ROWS)}


def together(rng: np.random.Generator) -> Keys:
    x = rng.integers(0, KEYS, ROWS)
    return {"x": x, "y": (7 * x + 3) % KEYS}


@pytest.mark.slow
def test_keys_that_come_to_go_together_are_placed_together(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.push(apart, 5)
    assert feed.copies_a_row == pytest.approx(1.25, abs=0.05)
    taken = feed.placement["timesTaken"]
    feed.push(together, 9)
    assert feed.placement["timesTaken"] > taken
    # Every row of a has one place now; those of b and c have one key each.
    assert feed.copies_a_row < 1.06
    assert feed.placement["imbalance"] < 1.25
    placed_in_batch = feed.placement["placedInBatch"]
    feed.push(together, 5)
    assert feed.placement["placedInBatch"] == placed_in_batch
    feed.assert_exact()
    reasons = [reason for change in feed.session.engine.plans.changes for reason in change.reasons]
    assert any("go together" in reason and "rows shipped" in reason for reason in reasons)
    explained = explain_plan(feed.session.engine)
    assert f"since batch {placed_in_batch}" in explained
    assert "placed where rows meet" in explained


@pytest.mark.slow
def test_noise_moves_nothing(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.push(apart, 8)
    # At most the balance of the first placement was bettered, which does not depend on chance.
    taken = feed.placement["timesTaken"]
    assert taken <= 1
    sought = feed.placement["timesSought"]
    feed.push(apart, 6)
    assert feed.placement["timesTaken"] == taken
    assert feed.placement["timesSought"] <= sought + 1
    feed.assert_exact()


def test_a_hot_key_group_that_moves_is_followed_where_nothing_is_shipped(tmp_path: Path) -> None:
    feed = Feed(tmp_path, exchange="references", placement="shared", routing="hash")
    # Half of the rows in an eighth of the key groups, which lie in one partition under an even placement.
    order = np.argsort([_group(key) for key in range(KEYS)])

    def hot(part: int) -> Callable[[np.random.Generator], Keys]:
        def keys_of(rng: np.random.Generator) -> Keys:
            hot_keys = order[part : part + 12]
            is_hot = rng.random(ROWS) < 0.6
            x = np.where(is_hot, rng.choice(hot_keys, ROWS), rng.integers(0, KEYS, ROWS))
            return {"x": x, "y": rng.integers(0, KEYS, ROWS)}

        return keys_of

    feed.push(hot(0), 7)
    assert feed.placement["timesTaken"] >= 1
    assert feed.placement["imbalance"] < 1.15
    taken = feed.placement["timesTaken"]
    feed.push(hot(36), 9)
    assert feed.placement["timesTaken"] > taken
    assert feed.placement["imbalance"] < 1.2
    assert feed.placement["expectedShippedRows"] == feed.placement["shippedRows"] == 0
    feed.assert_exact()


def _group(key: int) -> int:
    return int(group_of_codes(hash_keys([pa.array([key])]).codes, 64)[0])


@pytest.mark.slow
def test_the_engine_ships_exactly_what_the_model_says(tmp_path: Path) -> None:
    """Whatever the placements, as long as all rows are in the sample; rows without a key too."""

    def policies(batch: int) -> GivenPolicies:
        def place(plan: SharedPlan, _stats: StatsCatalog, _running: Placements | None) -> Placements:
            chance = Random(batch)
            by_use = {}
            for uses in key_classes(plan):
                owners = tuple(chance.randrange(4) for _ in range(64))
                by_use |= dict.fromkeys(uses, Placement(owners, 4))
            return Placements.of(even_placement(64, 4), by_use)

        return GivenPolicies(placement=place)

    feed = Feed(tmp_path)
    feed.session.engine.plans.follow(policies)
    shipped = set()
    for _ in range(5):
        feed.push(apart, 1, rows=100)
        assert feed.placement["expectedShippedRows"] == pytest.approx(feed.placement["shippedRows"])
        shipped.add(feed.placement["shippedRows"])
    assert len(shipped) > 2
    feed.assert_exact()


def test_queries_come_and_go_while_it_places(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.push(together, 5)
    assert feed.placement["timesTaken"] == 1
    feed.session.create_query(f"SELECT b.x FROM b JOIN c o ON b.x = o.y AND b.ts {NEAR}", "united")
    feed.push(together, 2)
    plan = feed.session.engine.plans.planned().plan
    # What was placed by two keys is one class now, and lies together.
    (uses,) = key_classes(plan)
    assert len({plan.placements.of_use(use) for use in uses}) == 1
    feed.session.drop_query("united")
    feed.push(together, 5)
    feed.assert_exact()
    assert feed.copies_a_row < 1.2


def test_showing_a_plan_changes_nothing(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    for _ in range(8):
        feed.push(together, 1)
        before = feed.session.engine.plans.planned().plan
        for _ in range(3):
            explain_plan(feed.session.engine)
            feed.session.engine.plans.previewed(BY_X)
        assert feed.session.engine.plans.planned().plan == before
    assert feed.placement["timesTaken"] == 1
    assert feed.placement["placedInBatch"] == 4


def test_another_number_of_partitions_begins_evenly(tmp_path: Path) -> None:
    feed = Feed(tmp_path)
    feed.push(together, 5)
    placer = feed.session.engine.plans.placer
    assert placer is not None
    plan, stats = feed.session.engine.plans.planned().plan, feed.session.engine.head.statistics
    assert plan.placements.special
    assert placer(plan, stats, plan.placements) == plan.placements
    five = Placements(even_placement(64, 5))
    assert placer(plan, stats, five) == five


def test_a_background_answer_is_taken_over_at_a_batch_edge(tmp_path: Path) -> None:
    feed = Feed(tmp_path, plan_in_background=True)
    placer = feed.session.engine.plans.placer
    assert placer is not None
    assert placer.in_background
    for _ in range(6):
        feed.push(together, 1)
        placer.wait()
    assert feed.placement["timesTaken"] == 1
    feed.push(together, 1)
    assert feed.copies_a_row < 1.06
    feed.assert_exact()


def test_options_say_whether_placements_follow_the_data(tmp_path: Path) -> None:
    assert not make_options().places_by_samples
    assert make_options(exchange="rows").places_by_samples
    assert not make_options(exchange="rows", copies="key").places_by_samples
    assert not make_options(exchange="rows", placement="even").places_by_samples
    assert make_options(placement="shared").places_by_samples
    with pytest.raises(SessionError, match="placement is 'best'"):
        make_options(placement="best")
    feed = Feed(tmp_path, placement="even")
    feed.push(together, 2)
    assert feed.session.engine.plans.placer is None
    assert "placement" not in (feed.session.progress or {})
    assert not feed.session.engine.head.statistics.observed.key_groups
