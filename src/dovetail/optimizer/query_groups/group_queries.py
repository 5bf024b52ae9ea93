"""Query groups (A5, AJoin section 4): who joins two stores by the same equality, and is better planned together.

    uses of views-videos:   Q4 wants {v1 v2}, Q5 {v3 v4}, Q6 {v1 v2 v5}
    shared < separate for Q4 and Q6 (rows in common), not for Q5:      G1 = {Q4, Q6}, G2 = {Q5}

The pair whose shared cost is least, of those that cost less shared than separate, founds a group; whoever is in no
group yet joins it eagerly if that again costs less than apart; then the next pair, until none pays. Who is left is
tried once more with all groups, and then stays alone. A partition of least cost is NP-hard to find; this one never
costs more than everybody alone. Apart means: the group as it is, and the new one alone. The paper adds up all of them
alone, so that what a group has saved would pay for members that only make it dearer.

Uses with equal selections are one from the start. Among more than `ALL_PAIRS_UP_TO` different ones, each is paired only
with some that cost about as much as itself (equal rows cost equally much), that have a selection in common with it, and
with the dearest (they may contain it); a group looks only at partners of its members. So the number of costs asked for
grows with the uses, not with their pairs.

Which order or intermediate a group takes is the joint optimizer's choice; for it, predicates of different groups are
different predicates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

from dovetail.core.errors import QueryError
from dovetail.query.expression import Expression

ALL_PAIRS_UP_TO = 64
_NEAR_PARTNERS = 8
_DEAREST_PARTNERS = 2
_ALIKE_PARTNERS = 2
REGROUP_ALL_ABOVE = 0.5
"""Share of queries created or dropped above which groups are made from scratch (A6; the paper's measured threshold)."""


@dataclass(frozen=True)
class JoinUse:
    """One query's use of an edge: what it wants of the rows of either store, as expressions over `row`."""

    query: str
    a_selection: Expression
    b_selection: Expression

    @cached_property
    def a_text(self) -> str:
        return str(self.a_selection)

    @cached_property
    def b_text(self) -> str:
        return str(self.b_selection)

    @property
    def order(self) -> tuple[str, str, str]:
        return self.query, self.a_text, self.b_text


Group = tuple[JoinUse, ...]
Groups = tuple[Group, ...]


class GroupCost(Protocol):
    def cost(self, uses: Sequence[JoinUse]) -> float:
        """Of executing these together; not negative. Their selections differ from each other, and the order of uses
        does not matter.
        """


def group_uses(uses: Iterable[JoinUse], cost: GroupCost) -> Groups:
    """The same groups for any order of `uses`; groups are sorted by their first query, and uses within them."""
    return _sorted(_Grouping(_bundles(uses), cost).groups())


def regroup(groups: Groups, added: Iterable[JoinUse], removed: Collection[str], cost: GroupCost) -> Groups:
    """Without the queries `removed` and with the uses `added`; groups that neither touches stay the same objects.

    A created query goes to the group where it saves most, or founds one. A group that lost members and no longer pays
    is grouped anew within itself. From scratch once more than half of the queries changed.
    """
    added = tuple(added)
    old_queries = {use.query for group in groups for use in group}
    new_queries = {use.query for use in added}
    if new_queries & (old_queries - set(removed)):
        raise QueryError(
            f"{', '.join(sorted(new_queries & old_queries))} already in a group", hint="drop a query before it is added"
        )
    kept = [tuple(use for use in group if use.query not in removed) for group in groups]
    changed_count = len(old_queries & set(removed)) + len(new_queries)
    if changed_count > REGROUP_ALL_ABOVE * len(old_queries | new_queries):
        return group_uses((*(use for group in kept for use in group), *added), cost)
    changed: list[Group] = []
    for old, left in zip(groups, kept, strict=True):
        changed += _still_paying(old, left, cost)
    return _sorted(_with_added(_sorted(changed), added, cost))


@dataclass(frozen=True)
class _Bundle:
    """Uses with equal selections: any of them stands for all."""

    uses: Group
    alone: float = 0.0

    @property
    def one(self) -> JoinUse:
        return self.uses[0]


def _bundles(uses: Iterable[JoinUse]) -> list[Group]:
    by_selections: dict[tuple[str, str], list[JoinUse]] = {}
    for use in sorted(uses, key=lambda use: use.order):
        by_selections.setdefault((use.a_text, use.b_text), []).append(use)
    return [tuple(by_selections[texts]) for texts in sorted(by_selections)]


def _distinct(group: Group) -> Group:
    return tuple(bundle[0] for bundle in _bundles(group))


class _Grouping:
    """Bundles are numbered from the cheapest alone on; a group is a list of numbers."""

    def __init__(self, bundles: list[Group], cost: GroupCost) -> None:
        self._cost = cost
        costed = [_Bundle(bundle, cost.cost(bundle[:1])) for bundle in bundles]
        self._bundles = sorted(costed, key=lambda bundle: bundle.alone)
        self._free = set(range(len(costed)))
        self._partners: dict[int, set[int]] = {}

    def groups(self) -> list[Group]:
        found = []
        for _, first, second in sorted(self._paying_pairs()):
            if first in self._free and second in self._free:
                self._free -= {first, second}
                found.append(self._extended([first, second]))
        self._place_left_ones(found)
        found += [[number] for number in sorted(self._free)]
        return [tuple(use for number in group for use in self._bundles[number].uses) for group in found]

    def _paying_pairs(self) -> list[tuple[float, int, int]]:
        pairs = []
        for first, second in self._candidate_pairs():
            a, b = self._bundles[first], self._bundles[second]
            shared = self._cost.cost((a.one, b.one))
            if _pays(shared, a.alone + b.alone):
                pairs.append((shared, first, second))
                self._partners.setdefault(first, set()).add(second)
                self._partners.setdefault(second, set()).add(first)
        return pairs

    def _candidate_pairs(self) -> Iterator[tuple[int, int]]:
        count = len(self._bundles)
        if count <= ALL_PAIRS_UP_TO:
            yield from combinations(range(count), 2)
            return
        partners: list[set[int]] = [set() for _ in range(count)]
        everyone = range(count)
        _pair_with_next(everyone, _NEAR_PARTNERS, partners)
        for alike in self._with_a_selection_in_common():
            _pair_with_next(alike, _ALIKE_PARTNERS, partners)
        for first in everyone:
            dearest = range(max(first + 1, count - _DEAREST_PARTNERS), count)
            yield from ((first, second) for second in sorted(partners[first].union(dearest)))

    def _with_a_selection_in_common(self) -> Iterable[list[int]]:
        by_selection: dict[tuple[str, str], list[int]] = {}
        for number, bundle in enumerate(self._bundles):
            by_selection.setdefault(("a", bundle.one.a_text), []).append(number)
            by_selection.setdefault(("b", bundle.one.b_text), []).append(number)
        return by_selection.values()

    def _extended(self, group: list[int]) -> list[int]:
        """With all free ones that save by joining, the cheapest first; they are free no more."""
        looks_at_all = len(self._bundles) <= ALL_PAIRS_UP_TO
        waiting = set(self._free) if looks_at_all else self._partners_of(group)
        members = [self._bundles[number].one for number in group]
        together = self._cost.cost(members)
        refused: set[int] = set()
        while waiting:
            number = min(waiting)
            waiting.discard(number)
            candidate = self._bundles[number]
            shared = self._cost.cost((*members, candidate.one))
            if not _pays(shared, together + candidate.alone):
                refused.add(number)
                continue
            group.append(number)
            members.append(candidate.one)
            together = shared
            self._free.discard(number)
            if not looks_at_all:
                waiting |= self._partners_of([number]) - refused
        return group

    def _place_left_ones(self, groups: list[list[int]]) -> None:
        """Who did not fit into a group when it was made may fit now that it has grown, or was no partner of it."""
        members = [tuple(self._bundles[number].one for number in group) for group in groups]
        costs = [self._cost.cost(group) for group in members]
        for number in sorted(self._free):
            bundle = self._bundles[number]
            place, shared = _best_place(bundle.one, bundle.alone, members, costs, self._cost)
            if place < len(groups):
                groups[place].append(number)
                members[place] += (bundle.one,)
                costs[place] = shared
                self._free.discard(number)

    def _partners_of(self, group: Iterable[int]) -> set[int]:
        return {partner for number in group for partner in self._partners[number]} & self._free


def _pair_with_next(numbers: Sequence[int], count: int, partners: list[set[int]]) -> None:
    for place, number in enumerate(numbers):
        partners[number].update(numbers[place + 1 : place + 1 + count])


def _pays(shared: float, separate: float) -> bool:
    """Less by more than rounding: sums of equal costs differ in the last digit."""
    return shared < separate * (1 - 1e-9)


def _still_paying(old: Group, left: Group, cost: GroupCost) -> Iterator[Group]:
    if len(left) == len(old):
        yield old
    elif left:
        distinct = _distinct(left)
        if len(distinct) == 1 or _pays(cost.cost(distinct), sum(cost.cost((use,)) for use in distinct)):
            yield left
        else:
            yield from group_uses(left, cost)


def _with_added(old_groups: Groups, added: Iterable[JoinUse], cost: GroupCost) -> list[Group]:
    """Each added use goes where it saves most; each group's cost is asked for once, and again when it grew."""
    groups = list(old_groups)
    members = [_distinct(group) for group in groups]
    costs = [cost.cost(group) for group in members]
    place_by_texts = {(use.a_text, use.b_text): place for place, group in enumerate(members) for use in group}
    for bundle in _bundles(added):
        use = bundle[0]
        place = place_by_texts.get((use.a_text, use.b_text))
        if place is not None:
            groups[place] += bundle
            continue
        alone = cost.cost((use,))
        place, shared = _best_place(use, alone, members, costs, cost)
        if place == len(groups):
            groups.append(())
            members.append(())
            costs.append(0.0)
        groups[place] += bundle
        members[place] += (use,)
        costs[place] = shared
        place_by_texts[use.a_text, use.b_text] = place
    return groups


def _best_place(
    use: JoinUse, alone: float, members: list[Group], costs: list[float], cost: GroupCost
) -> tuple[int, float]:
    """The group where `use` saves most and what that costs then; the place after the last is a group of its own."""
    best, best_saving, best_cost = len(members), 0.0, alone
    for place in _near_places(alone, costs):
        shared = cost.cost((*members[place], use))
        saving = costs[place] + alone - shared
        if saving > best_saving and _pays(shared, costs[place] + alone):
            best, best_saving, best_cost = place, saving, shared
    return best, best_cost


def _near_places(alone: float, costs: list[float]) -> list[int]:
    if len(costs) <= ALL_PAIRS_UP_TO:
        return list(range(len(costs)))
    by_cost = sorted(range(len(costs)), key=lambda place: (costs[place], place))
    dearest, rest = by_cost[-_DEAREST_PARTNERS:], by_cost[:-_DEAREST_PARTNERS]
    near = sorted(rest, key=lambda place: (abs(costs[place] - alone), place))[:_NEAR_PARTNERS]
    return sorted((*near, *dearest))


def _sorted(groups: Iterable[Group]) -> Groups:
    """A group that is in order already stays the same object."""
    ordered = []
    for group in groups:
        uses = tuple(sorted(group, key=lambda use: use.order))
        ordered.append(group if uses == group else uses)
    return tuple(sorted(ordered, key=lambda group: [use.order for use in group]))
