"""The driver: passes run when what they read is another object, and what did not change stays the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dovetail.optimizer.draft import Draft, DraftSettings
from dovetail.optimizer.pipeline import PASSES, draw
from dovetail.optimizer.planned import Planned
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

SQL = "SELECT r.v FROM r JOIN s ON r.x = s.x JOIN t ON s.y = t.y"
MakeLive = Callable[[str, str], LiveQuery]
ALWAYS = {"choose_decisions", "choose_statistics", "choose_placement", "choose_routing"}
"""These look at what is newest with every batch."""


@pytest.fixture
def given(live: MakeLive, streams: dict[str, Stream]) -> Draft:
    return Draft((live("q", SQL),), streams, StatsCatalog(), settings=DraftSettings(even_placement(8, 2)))


def test_the_next_batch_asks_the_data_again_and_leaves_the_plan_the_same_object(given: Draft) -> None:
    first = draw(given)
    made = first.draft
    running = Planned(
        *(made.plan, made.queries, made.decisions, made.stats, made.orders, (), made.routings, made.asked, made.plan)
    )
    second = draw(replace(given, now=StatsCatalog(), batch=1, running=running), first)
    assert {each.name for each in second.traces if not each.is_kept} == ALWAYS
    assert second.draft.plan is made.plan


def test_nothing_new_runs_nothing(given: Draft) -> None:
    first = draw(given)
    second = draw(given, first)
    assert all(each.is_kept for each in second.traces)
    assert second.draft.plan is first.draft.plan


def test_other_queries_change_what_follows_from_them_and_the_trace_says_what_it_was(
    given: Draft, live: MakeLive
) -> None:
    first = draw(given)
    second = draw(replace(given, asked=(*given.asked, live("other", SQL))), first)
    trace = {each.name: each for each in second.traces}["share_probe_prefixes"]
    assert not trace.is_kept
    assert trace.before == first.traces[[each.name for each in PASSES].index("share_probe_prefixes")].tells
    assert trace.tells != trace.before
    fresh = draw(replace(given, asked=second.draft.asked))
    assert second.draft.plan == fresh.draft.plan, "what a draft began with changes nothing"
