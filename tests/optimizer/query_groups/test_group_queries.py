"""Query groups: AJoin's Figures 6 and 7 under its cost (Eq. 2), and what must hold of any groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import pytest

from benchmarks.paper_costs.ajoin import AJoinCost, KeyedRow, RowSets, cost_of_row_sets
from dovetail.core.errors import QueryError
from dovetail.optimizer.query_groups.group_queries import (
    ALL_PAIRS_UP_TO,
    GroupCost,
    Groups,
    JoinUse,
    group_uses,
    regroup,
)
from dovetail.query.expression import Column, Expression
from dovetail.query.types import BOOLEAN


def selection(text: str) -> Expression:
    return Column("row", text, BOOLEAN)


def queries_of(groups: Groups) -> list[list[str]]:
    return [[use.query for use in group] for group in groups]


def separate_cost(uses: Sequence[JoinUse], cost: GroupCost) -> float:
    return sum(cost.cost((use,)) for use in uses)


def total_cost(groups: Groups, cost: GroupCost) -> float:
    """Of each group; uses with equal selections count once."""
    return sum(cost.cost(list({(use.a_text, use.b_text): use for use in group}.values())) for group in groups)


class Video(NamedTuple):
    vid: str
    geo: str
    lang: str


class View(NamedTuple):
    vid: str
    usr: str
    geo: str
    duration: int


class Comment(NamedTuple):
    usr: str
    length: int
    emojis: int
    photo: str | None


EU = ("GER", "ITA", "FRA")
VIDEOS = [
    *(Video(vid, "US", "ENG") for vid in ("v1", "v2", "v3")),
    Video("v1", "GBR", "ENG"),
    *(Video(vid, "FRA", "FRE") for vid in ("v1", "v2", "v3")),
    Video("v2", "CAN", "FRE"),
    *(Video(vid, "ITA", "ITA") for vid in ("v1", "v2", "v3")),
] * 3
VIEWS = [
    *(View(vid, usr, "GER", 5) for vid in ("v1", "v2", "v3") for usr in ("u1", "u2")),
    View("v1", "u1", "GER", 50),
    *(View(vid, usr, "CAN", 60) for vid in ("v1", "v2", "v3") for usr in ("u1", "u2")),
    View("v2", "u2", "US", 60),
    View("v3", "u1", "US", 60),
    *(View(vid, "u3", "ITA", 60) for vid in ("v1", "v2", "v3")),
] * 3
COMMENTS = [
    *(Comment(usr, 9, 1, None) for usr in ("u1", "u2", "u2")),
    Comment("u1", 9, 0, None),
    *(Comment(usr, 3, 0, "yes") for usr in ("u1", "u2", "u1", "u2")),
]
VIDEO_PREDICATES: Mapping[str, Callable[[Video], bool]] = {
    "lang=ENG": lambda video: video.lang == "ENG",
    "geo=US": lambda video: video.geo == "US",
    "lang=FRE": lambda video: video.lang == "FRE",
    "lang=ITA": lambda video: video.lang == "ITA",
    "geo=FRA": lambda video: video.geo == "FRA",
}
VIEW_PREDICATES: Mapping[str, Callable[[View], bool]] = {
    "geo=GER": lambda view: view.geo == "GER",
    "duration<10": lambda view: view.duration < 10,
    "geo=CAN": lambda view: view.geo == "CAN",
    "geo=ITA": lambda view: view.geo == "ITA",
    "geo!=EU": lambda view: view.geo not in EU,
    "geo=EU": lambda view: view.geo in EU,
}
COMMENT_PREDICATES: Mapping[str, Callable[[Comment], bool]] = {
    "length>5": lambda comment: comment.length > 5,
    "emojis>0": lambda comment: comment.emojis > 0,
    "photo!=null": lambda comment: comment.photo is not None,
    "length<5": lambda comment: comment.length < 5,
}


Row = TypeVar("Row")


def row_sets(rows: Sequence[Row], key: Callable[[Row], str], tests: Mapping[str, Callable[[Row], bool]]) -> RowSets:
    return RowSets(
        {
            selection(text): frozenset(KeyedRow(place, key(row)) for place, row in enumerate(rows) if passes(row))
            for text, passes in tests.items()
        }
    )


VIDEO_VIEW_COST = cost_of_row_sets(
    row_sets(VIDEOS, lambda video: video.vid, VIDEO_PREDICATES), row_sets(VIEWS, lambda view: view.vid, VIEW_PREDICATES)
)
VIEW_COMMENT_COST = cost_of_row_sets(
    row_sets(VIEWS, lambda view: view.usr, VIEW_PREDICATES),
    row_sets(COMMENTS, lambda comment: comment.usr, COMMENT_PREDICATES),
)
Q4 = JoinUse("Q4", selection("lang=FRE"), selection("geo=CAN"))
VIDEO_VIEW_USES = (
    JoinUse("Q1", selection("lang=ENG"), selection("geo=GER")),
    JoinUse("Q2", selection("geo=US"), selection("duration<10")),
    Q4,
    JoinUse("Q5", selection("lang=ITA"), selection("geo=ITA")),
    JoinUse("Q6", selection("geo=FRA"), selection("geo!=EU")),
)
VIEW_COMMENT_USES = (
    JoinUse("Q2", selection("duration<10"), selection("length>5")),
    JoinUse("Q3", selection("geo=EU"), selection("emojis>0")),
    JoinUse("Q6", selection("geo!=EU"), selection("photo!=null")),
)
Q7 = JoinUse("Q7", selection("geo=CAN"), selection("length<5"))


def test_crd_is_the_papers_equation_1() -> None:
    chance = random.Random(1)
    for _ in range(50):
        a, b, c = (frozenset(KeyedRow(chance.randrange(9), "k") for _ in range(5)) for _ in range(3))
        sets = RowSets({selection(name): rows for name, rows in zip("abc", (a, b, c), strict=True)})
        equation_1 = len(a) + len(b) + len(c) - len(a & b) - len(b & c) - len(a & c) + len(a & b & c)
        assert sets.rows([selection(name) for name in "abc"]) == equation_1


def test_each_flag_of_equation_2_adds_its_term() -> None:
    a = RowSets({selection("a"): frozenset({KeyedRow(0, "x"), KeyedRow(1, "x"), KeyedRow(2, "y")})})
    b = RowSets({selection("b"): frozenset(KeyedRow(row, key) for row, key in enumerate("xxyz"))})
    use = JoinUse("Q", selection("a"), selection("b"))

    def cost(*flags: bool) -> float:
        indexes_a, indexes_b, materializes = flags
        return cost_of_row_sets(a, b, indexes_a=indexes_a, indexes_b=indexes_b, materializes=materializes).cost((use,))

    assert cost(False, False, False) == 2
    assert cost(True, False, False) == 2 + 3
    assert cost(False, True, False) == 2 + 4
    assert cost(False, False, True) == 2 + 5


def test_cardinalities_may_come_from_a_function() -> None:
    class Assumed:
        def rows(self, selections: Sequence[Expression]) -> float:
            return 10.0 * len(selections)

        def distinct_keys(self, selections: Sequence[Expression]) -> float:
            return 4.0 if selections else 0.0

    cost = AJoinCost(Assumed(), Assumed(), lambda a, b: 3.0 * len(a) * len(b))
    assert cost.cost(VIDEO_VIEW_USES[:1]) == 10 + 10 + 4 + 3
    assert cost.cost(VIDEO_VIEW_USES[:2]) == 20 + 20 + 4 + 12


def test_sharing_q4_and_q5_costs_more_than_separate_as_in_figure_6() -> None:
    """With Q5 as it is printed there; they have no rows in common, so all that sharing adds are pairs nobody wants."""
    q5 = JoinUse("Q5", selection("lang=ENG"), selection("geo=GER"))
    # 12 videos, 18 views, 3 keys, 4 * 6 * 3 pairs; and with 21 views 12 + 21 + 3 + (6 * 9 + 3 * 6 + 3 * 6).
    assert VIDEO_VIEW_COST.cost((Q4,)) == 105
    assert VIDEO_VIEW_COST.cost((q5,)) == 126
    assert VIDEO_VIEW_COST.cost((Q4, q5)) == 381
    assert queries_of(group_uses((Q4, q5), VIDEO_VIEW_COST)) == [["Q4"], ["Q5"]]


def test_the_groups_are_those_of_figure_7() -> None:
    """The figure prints Q5 with the selections that Figure 1 gives to Q1, which would put both into one group under
    any cost; so Q5 has a language and a country of its own here.
    """
    video_view = group_uses(VIDEO_VIEW_USES, VIDEO_VIEW_COST)
    view_comment = group_uses(VIEW_COMMENT_USES, VIEW_COMMENT_COST)
    assert queries_of(video_view) == [["Q1", "Q2"], ["Q4", "Q6"], ["Q5"]]
    assert queries_of(view_comment) == [["Q2", "Q3"], ["Q6"]]


def test_the_cheapest_pair_of_figure_7_takes_nobody_else_in() -> None:
    pairs = list(combinations(VIDEO_VIEW_USES, 2))
    paying = [pair for pair in pairs if VIDEO_VIEW_COST.cost(pair) < separate_cost(pair, VIDEO_VIEW_COST)]
    assert [use.query for use in min(paying, key=VIDEO_VIEW_COST.cost)] == ["Q1", "Q2"]
    for other in VIDEO_VIEW_USES[2:]:
        three = (*VIDEO_VIEW_USES[:2], other)
        assert VIDEO_VIEW_COST.cost(three) > separate_cost(three, VIDEO_VIEW_COST)


def test_dropping_q4_and_creating_q7_touches_only_their_groups() -> None:
    """The paper's incremental example: Q7 goes to W-C.G2, and no other group changes."""
    video_view = group_uses(VIDEO_VIEW_USES, VIDEO_VIEW_COST)
    without_q4 = regroup(video_view, (), {"Q4"}, VIDEO_VIEW_COST)
    assert queries_of(without_q4) == [["Q1", "Q2"], ["Q5"], ["Q6"]]
    assert without_q4[0] is video_view[0]
    assert without_q4[1] is video_view[2]
    view_comment = group_uses(VIEW_COMMENT_USES, VIEW_COMMENT_COST)
    with_q7 = regroup(view_comment, (Q7,), {"Q4"}, VIEW_COMMENT_COST)
    assert queries_of(with_q7) == [["Q2", "Q3"], ["Q6", "Q7"]]
    assert with_q7[0] is view_comment[0]


def test_a_created_query_that_pays_nowhere_founds_a_group() -> None:
    groups = group_uses(VIDEO_VIEW_USES[:3], VIDEO_VIEW_COST)
    assert queries_of(regroup(groups, VIDEO_VIEW_USES[3:4], (), VIDEO_VIEW_COST)) == [["Q1", "Q2"], ["Q4"], ["Q5"]]


def random_case(seed: int, count: int) -> tuple[list[JoinUse], AJoinCost]:
    """Selections are ranges of few rows with few keys: some uses are equal, some overlap, some do not."""
    chance = random.Random(seed)
    rows = [KeyedRow(row, chance.choice("xyz")) for row in range(40)]

    def some_range() -> tuple[str, frozenset[KeyedRow]]:
        begin, length = chance.randrange(36), chance.choice([2, 4, 12])
        return f"{begin}+{length}", frozenset(rows[begin : begin + length])

    a, b, uses = {}, {}, []
    for number in range(count):
        (a_text, a_rows), (b_text, b_rows) = some_range(), some_range()
        if uses and chance.random() < 0.2:
            like = chance.choice(uses)
            uses.append(JoinUse(f"Q{number}", like.a_selection, like.b_selection))
            continue
        a[selection(a_text)], b[selection(b_text)] = a_rows, b_rows
        uses.append(JoinUse(f"Q{number}", selection(a_text), selection(b_text)))
    return uses, cost_of_row_sets(RowSets(a), RowSets(b))


COUNTS = [0, 1, 2, 7, 30, ALL_PAIRS_UP_TO + 40]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_groups_are_a_partition_that_costs_no_more_than_everybody_alone(seed: int, count: int) -> None:
    uses, cost = random_case(seed, count)
    groups = group_uses(uses, cost)
    assert sorted(use.query for group in groups for use in group) == sorted(use.query for use in uses)
    assert total_cost(groups, cost) <= separate_cost(uses, cost)
    for group in groups:
        if len(group) > 1:
            assert total_cost((group,), cost) < separate_cost(group, cost)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_uses_does_not_matter(seed: int, count: int) -> None:
    uses, cost = random_case(seed, count)
    groups = group_uses(uses, cost)
    for _ in range(3):
        random.Random(seed).shuffle(uses)
        assert group_uses(uses, cost) == groups


@pytest.mark.parametrize("seed", range(6))
def test_equal_selections_are_in_one_group(seed: int) -> None:
    uses, cost = random_case(seed, 30)
    groups = group_uses(uses, cost)
    places: dict[tuple[str, str], set[int]] = {}
    for place, group in enumerate(groups):
        for use in group:
            places.setdefault((use.a_text, use.b_text), set()).add(place)
    assert all(len(found) == 1 for found in places.values())


def test_the_pair_of_least_shared_cost_comes_first() -> None:
    """Both pairs pay, Q2-Q3 saves more, and nobody wants to be three."""

    class Given:
        def cost(self, uses: Sequence[JoinUse]) -> float:
            names = tuple(sorted(use.query for use in uses))
            return {("Q1",): 4.0, ("Q2",): 4.0, ("Q3",): 9.0, ("Q1", "Q2"): 7.0, ("Q2", "Q3"): 9.0}.get(names, 99.0)

    uses = [JoinUse(name, selection(name), selection(name)) for name in ("Q1", "Q2", "Q3")]
    assert queries_of(group_uses(uses, Given())) == [["Q1", "Q2"], ["Q3"]]


def test_nobody_joins_a_group_at_the_cost_of_what_it_saved() -> None:
    """Shared by all three 11, separate 12; but the pair and the third apart cost 4 + 4."""

    class Given:
        def cost(self, uses: Sequence[JoinUse]) -> float:
            names = {use.query for use in uses}
            return 4.0 if len(names) == 1 or names == {"Q1", "Q2"} else 11.0

    uses = [JoinUse(name, selection(name), selection(name)) for name in ("Q1", "Q2", "Q3")]
    assert queries_of(group_uses(uses, Given())) == [["Q1", "Q2"], ["Q3"]]


class Counting:
    """Counts the costs asked for and the most uses that one was asked for."""

    def __init__(self, cost: GroupCost) -> None:
        self._cost = cost
        self.asked: list[tuple[JoinUse, ...]] = []

    def cost(self, uses: Sequence[JoinUse]) -> float:
        self.asked.append(tuple(uses))
        return self._cost.cost(uses)


class Overlap:
    """Uses are numbered; each wants ten rows from its number on, and a group pays a row once."""

    def cost(self, uses: Sequence[JoinUse]) -> float:
        return len({row for use in uses for row in range(int(use.a_text[4:]), int(use.a_text[4:]) + 10)})


def numbered(number: int) -> JoinUse:
    return JoinUse(f"Q{number:03}", selection(str(number)), selection("all"))


def test_many_equal_uses_cost_no_more_to_group_than_one() -> None:
    uses = [JoinUse(f"Q{number}", selection("5"), selection("all")) for number in range(500)]
    cost = Counting(Overlap())
    assert len(group_uses(uses, cost)) == 1
    assert len(cost.asked) == 1


def test_the_costs_asked_for_grow_with_the_uses_and_not_with_their_pairs() -> None:
    for count in (250, 500):
        cost = Counting(Overlap())
        groups = group_uses([numbered(number * 5) for number in range(count)], cost)
        assert len(cost.asked) < 25 * count
        assert total_cost(groups, Overlap()) < 0.7 * 10 * count


@pytest.mark.parametrize("seed", range(8))
def test_a_regrouped_partition_has_the_right_uses_and_pays(seed: int) -> None:
    uses, cost = random_case(seed, 24)
    chance = random.Random(seed)
    live, waiting = uses[:16], uses[16:]
    groups = group_uses(live, cost)
    for _ in range(4):
        removed = {use.query for use in chance.sample(live, 2)}
        added = [waiting.pop() for _ in range(2)]
        before = groups
        groups = regroup(before, added, removed, cost)
        live = [use for use in live if use.query not in removed] + added
        assert sorted(use.query for group in groups for use in group) == sorted(use.query for use in live)
        assert all(total_cost((group,), cost) <= separate_cost(group, cost) for group in groups)
        touched = {*removed, *(use.query for use in added)}
        for group in groups:
            if not touched & {use.query for use in group} and group not in before:
                grown_from = next(old for old in before if group[0] in old)
                assert removed & {use.query for use in grown_from}


@pytest.mark.parametrize("seed", range(4))
def test_regrouping_does_not_depend_on_the_order_of_what_is_added(seed: int) -> None:
    uses, cost = random_case(seed, 24)
    groups = group_uses(uses[:18], cost)
    found = regroup(groups, uses[18:], {"Q1"}, cost)
    assert regroup(groups, uses[:17:-1], {"Q1"}, cost) == found
    assert regroup(groups[::-1], uses[18:], {"Q1"}, cost) == found


def test_a_small_change_asks_only_for_the_groups_it_touches() -> None:
    groups = group_uses([numbered(number * 100 + step) for number in range(10) for step in range(3)], Overlap())
    assert len(groups) == 10
    cost = Counting(Overlap())
    found = regroup(groups, [numbered(204)], {"Q500"}, cost)
    assert [len(group) for group in found] == [3, 3, 4, 3, 3, 2, 3, 3, 3, 3]
    assert sum(new is old for new, old in zip(found, groups, strict=True)) == 8
    assert len(cost.asked) < 30


def test_a_group_that_lost_the_member_between_the_others_falls_apart() -> None:
    groups = group_uses([numbered(0), numbered(8), numbered(16), *map(numbered, range(100, 110))], Overlap())
    assert queries_of(groups)[0] == ["Q000", "Q008", "Q016"]
    assert queries_of(regroup(groups, (), {"Q008"}, Overlap()))[:2] == [["Q000"], ["Q016"]]


def test_more_than_half_changed_is_grouped_from_scratch() -> None:
    """Q000 and Q018 were put apart before Q009 came between; only a new start finds that all three overlap."""
    groups = group_uses([numbered(0), numbered(18), numbered(500)], Overlap())
    assert queries_of(groups) == [["Q000"], ["Q018"], ["Q500"]]
    added = [numbered(9), numbered(501)]
    assert queries_of(regroup(groups, added[:1], (), Overlap())) == [["Q000", "Q009"], ["Q018"], ["Q500"]]
    everything = [numbered(number) for number in (0, 9, 18, 500, 501, 502)]
    added = [use for use in everything if use.query in ("Q009", "Q501", "Q502")]
    within_half = regroup(groups, added, (), Overlap())
    scratch = regroup(groups, added, {"Q500"}, Overlap())
    assert queries_of(within_half) == [["Q000", "Q009"], ["Q018"], ["Q500", "Q501", "Q502"]]
    assert scratch == group_uses([use for use in everything if use.query != "Q500"], Overlap())
    assert queries_of(scratch)[0] == ["Q000", "Q009", "Q018"]


def test_a_query_is_not_added_twice() -> None:
    groups = group_uses([numbered(0), numbered(1)], Overlap())
    with pytest.raises(QueryError, match="Q001 already"):
        regroup(groups, [numbered(1)], (), Overlap())
    assert queries_of(regroup(groups, [numbered(1)], {"Q001"}, Overlap())) == [["Q000", "Q001"]]
