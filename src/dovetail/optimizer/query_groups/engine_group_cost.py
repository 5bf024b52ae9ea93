"""What a join of two stores costs this engine for a group of queries: rows that probe, and pairs that are found.

    Q1 wants 30% of a's rows, Q2 20%, together 40%:  a shared step is probed by 40% of the rows, two steps by 50%

Sharing seldom costs more here than apart, other than in AJoin (Eq. 2). There, a shared join builds every pair of equal
key, also where no query wants both rows. Here, such a pair is dropped where it is found; and a step of its own would
look at it too, since a store has one index for all queries. So what is paid per step is a union of rows and a union of
pairs, and a union is never larger than the sum.

What a query apart can still gain is a plan of its own: another order, because few of its own rows pass where many of
the group's do, or an intermediate that holds only its own pairs. That cannot be known before planning; `own_plan_gain`
stands for it, as the share of a query's own cost. So a query belongs to a group if the group saves it more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dovetail.optimizer.query_groups.group_queries import JoinUse
from dovetail.query.expression import Expression
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.selection_sample import SelectionRows, UnionRows

ASSUMED_OWN_PLAN_GAIN = 0.1
_REMEMBERED_GROUPS = 1024


class EngineGroupCost:
    """`GroupCost` in rows, for as long as a window: every row probes once, and every pair is found once.

    `match` is the probability that rows of the two stores meet (`StatsCatalog.match`). Rows are those of a stream of
    the store's name if they are not given. `step_rows` is what one more step costs whatever probes it, in rows.
    """

    def __init__(
        self,
        stats: StatsCatalog,
        a_store: str,
        b_store: str,
        match: float,
        *,
        a_rows: float | None = None,
        b_rows: float | None = None,
        own_plan_gain: float = ASSUMED_OWN_PLAN_GAIN,
        step_rows: float = 0.0,
    ) -> None:
        if not (0 <= match <= 1 and 0 <= own_plan_gain < 1 and step_rows >= 0):
            raise ValueError(f"not a chance, a share or rows: {match=}, {own_plan_gain=}, {step_rows=}")
        self._a = _Side(stats, a_store, stats.rows(a_store).value if a_rows is None else a_rows)
        self._b = _Side(stats, b_store, stats.rows(b_store).value if b_rows is None else b_rows)
        self._pairs = self._a.rows * self._b.rows * match
        self._own_plan_gain = own_plan_gain
        self._step_rows = step_rows
        self._known: dict[tuple[int, str, str], _Group] = {}

    def cost(self, uses: Sequence[JoinUse]) -> float:
        """Many candidates are tried behind the same members, so what these want together is remembered."""
        members, last = self._members(tuple(uses[:-1])), uses[-1]
        a = self._a.wanted(last.a_text, last.a_selection)
        b = self._b.wanted(last.b_text, last.b_selection)
        a_share = members.a.share if members.a_places & a.place else members.a.share_with(a.rows)
        b_share = members.b.share if members.b_places & b.place else members.b.share_with(b.rows)
        # Some query wants both rows of a pair: of the union's pairs not all, but no more than the queries' own.
        pair_share = min(a_share * b_share, members.pair_total + a.rows.share * b.rows.share)
        paid = self._step_rows + self._a.rows * a_share + self._b.rows * b_share + self._pairs * pair_share
        return paid if members.uses else paid * (1.0 - self._own_plan_gain)

    def _members(self, uses: tuple[JoinUse, ...]) -> _Group:
        if not uses:
            return _Group()
        place = _place_of(uses)
        known = self._known.get(place)
        if known is None or known.uses != uses:
            before = self._known.get(_place_of(uses[:-1])) if len(uses) > 1 else None
            known = before if before is not None and before.uses == uses[:-1] else _Group()
            for use in uses[len(known.uses) :]:
                known = self._with(known, use)
            if len(self._known) >= _REMEMBERED_GROUPS:
                self._known.clear()
            self._known[place] = known
        return known

    def _with(self, group: _Group, use: JoinUse) -> _Group:
        a, b = self._a.wanted(use.a_text, use.a_selection), self._b.wanted(use.b_text, use.b_selection)
        return _Group(
            (*group.uses, use),
            group.a if group.a_places & a.place else group.a.plus(a.rows),
            group.b if group.b_places & b.place else group.b.plus(b.rows),
            group.a_places | a.place,
            group.b_places | b.place,
            group.pair_total + a.rows.share * b.rows.share,
        )


class _Group(NamedTuple):
    """`a_places` are the selections that `a` unites: one of many uses is one set of rows."""

    uses: tuple[JoinUse, ...] = ()
    a: UnionRows = UnionRows()
    b: UnionRows = UnionRows()
    a_places: int = 0
    b_places: int = 0
    pair_total: float = 0.0


def _place_of(uses: tuple[JoinUse, ...]) -> tuple[int, str, str]:
    """Where such a group is remembered: to hash all of its uses would cost more than to compute it."""
    return len(uses), uses[0].query, uses[-1].query


class _Wanted(NamedTuple):
    rows: SelectionRows
    place: int
    """A bit of its own for each selection of a side."""


class _Side:
    def __init__(self, stats: StatsCatalog, store: str, rows: float) -> None:
        self._stats = stats
        self._store = store
        self.rows = rows
        self._wanted_by_text: dict[str, _Wanted] = {}

    def wanted(self, text: str, selection: Expression) -> _Wanted:
        found = self._wanted_by_text.get(text)
        if found is None:
            place = 1 << len(self._wanted_by_text)
            found = _Wanted(self._stats.selection_rows(self._store, selection), place)
            self._wanted_by_text[text] = found
        return found
