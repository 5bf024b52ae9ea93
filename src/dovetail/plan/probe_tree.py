"""Probe orders of all queries, merged into trees (C5): equal first steps are taken once and fork later.

    ProbeTree (new rows of one store)  >  ProbeNode (one step, shared)  >  Leg (what one query asks there)

Members of a growing result are called m0 (the new row), m1, m2 ... in the order they are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from dovetail.plan.factorization import Factorization, WhyBuilt
from dovetail.plan.store_plan import ROW, IndexPlan
from dovetail.plan.visibility import Visibility
from dovetail.query.expression import TRUE, Expression, columns_of, rename_relations
from dovetail.query.join_query import OutputColumn


def member_name(position: int) -> str:
    return f"m{position}"


def member_number(name: str) -> int:
    return int(name[1:])


@dataclass(frozen=True)
class MemberBound:
    """`time of member later - time of member earlier <= upper_us`."""

    earlier: int
    later: int
    upper_us: int


@dataclass(frozen=True)
class RangeEnd:
    """One end of a range: `value`, an expression over the members so far, plus `offset` in units of its type.

    A unit is a microsecond, a day, or the last digit of a decimal. The sum is never computed in SQL's arithmetic: an
    end beyond all values of the type is no end at all. An offset that is a float stands for a rounded difference.
    """

    value: Expression
    offset: int | float = 0
    is_inclusive: bool = True


@dataclass(frozen=True)
class StoredRange:
    """Where `stored`, an expression over `row`, must lie in a row that a leg wants; NULL lies nowhere.

    `is_exact`: the range says all that the conditions behind it say, and these are not among the leg's residuals.
    Otherwise it only spares pairs, and the residuals decide.
    """

    stored: Expression
    lower: RangeEnd | None
    upper: RangeEnd | None
    is_exact: bool

    def __post_init__(self) -> None:
        if self.lower is None and self.upper is None:
            raise ValueError("a range has an end")


@dataclass(frozen=True)
class Leg:
    """One query's demands where its result gains a member.

    `start` tells the starts of one query apart: in a self-join two of them may take the same step. A range over the
    order of the step's index is searched, one over something else is looked at while searching.
    """

    query: str
    start: int
    selection: Expression = TRUE
    bounds: tuple[MemberBound, ...] = ()
    residuals: tuple[Expression, ...] = ()
    ranges: tuple[StoredRange, ...] = ()


@dataclass(frozen=True)
class ProbeStep:
    """Look up `target` through `index` with `probe_keys`, expressions over the members so far.

    A step of a fill sees only rows that came before `before_batch`.
    """

    target: str
    index: IndexPlan
    probe_keys: tuple[Expression, ...]
    visibility: Visibility
    before_batch: int | None = None

    def __post_init__(self) -> None:
        if len(self.probe_keys) != len(self.index.keys):
            raise ValueError("a probe needs as many keys as its index")

    @cached_property
    def start_index(self) -> IndexPlan:
        """Of a first step: the index of the start's store in whose order its rows probe."""
        return self.probing_index(0)

    @cached_property
    def probed_by(self) -> tuple[int, str] | None:
        """Where all keys are of one member: that member, and the id of its store's index by them."""
        relations = {column.relation for key in self.probe_keys for column in columns_of(key)}
        if len(relations) != 1:
            return None
        member = member_number(relations.pop())
        return member, self.probing_index(member).id

    def probing_index(self, member: int) -> IndexPlan:
        """Where all keys are of one member: its store's index by them, placed as what they probe is."""
        keys = tuple(rename_relations(key, {member_name(member): ROW}) for key in self.probe_keys)
        return IndexPlan(keys, placing=self.index.placing)

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.probe_keys))
        seen = self.visibility.value if self.before_batch is None else f"batches before {self.before_batch}"
        return f"{self.target}{self.index.id} by ({keys}), {seen}"


@dataclass(frozen=True)
class Emit:
    """A query whose last member is joined at this node; `output` speaks of members.

    Its rows are answers, rows of the store `into`, or witnesses: then they only tell that their members are partners.
    With a `factorization` they are not built; `why_built` says why rows that are only aggregated must be.
    """

    query: str
    start: int
    output: tuple[OutputColumn, ...]
    into: str | None = None
    is_witness: bool = False
    factorization: Factorization | None = None
    why_built: WhyBuilt | None = None

    @property
    def is_answer(self) -> bool:
        return self.into is None and not self.is_witness


@dataclass(frozen=True)
class ProbeNode:
    """A step, the queries that take it, and what follows."""

    id: str
    member: int
    step: ProbeStep
    legs: tuple[Leg, ...]
    emits: tuple[Emit, ...]
    children: tuple[ProbeNode, ...]

    def __post_init__(self) -> None:
        passing = [(leg.query, leg.start) for leg in self.legs]
        leaving = [(emit.query, emit.start) for emit in self.emits]
        leaving += [(leg.query, leg.start) for child in self.children for leg in child.legs]
        if sorted(leaving) != sorted(passing) or len(set(passing)) != len(passing):
            raise ValueError(f"node {self.id}: queries that come in and go out differ")

    def walk(self) -> Iterator[ProbeNode]:
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def builds_rows(self) -> bool:
        """Whether rows that meet here become joined rows of anybody."""
        return bool(self.children) or any(emit.factorization is None for emit in self.emits)

    @property
    def depth(self) -> int:
        return 1 + max((child.depth for child in self.children), default=0)


@dataclass(frozen=True)
class ProbeTree:
    """All probes that new rows of `start` begin; `legs` hold the selections on the new row itself.

    `emits` are of queries over this store alone: their rows need no partner.
    """

    start: str
    legs: tuple[Leg, ...]
    children: tuple[ProbeNode, ...]
    emits: tuple[Emit, ...] = ()

    def walk(self) -> Iterator[ProbeNode]:
        for child in self.children:
            yield from child.walk()
