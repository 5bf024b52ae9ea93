"""Which last steps are folded instead of building the joined rows, and why the others are not (D4).

A fold is exact where what a walked row meets is a run of equal key within an interval of times, and each aggregate
is made of values of one side: then a run's count, sums, smallest and largest say all.

    SELECT a.k, COUNT(*), SUM(b.x) FROM a JOIN b ON a.k = b.k GROUP BY a.k

    new a probe b   key m0.k          argument m1.x    stored b is folded
    new b probe a   key m1.k = m0.k   argument m0.x    stored a is folded: the join equates the key with one of b's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.optimizer.draft import Draft, count_of
from dovetail.plan.factorization import Factorization, FoldedSide, WhyBuilt
from dovetail.plan.group_plan import WINDOW_TIME, GroupPlan
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode, member_name
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Call, Expression, relations_of, rename_relations
from dovetail.query.join_query import OutputColumn


def revise(draft: Draft) -> Draft:
    plan = choose_factorizations(draft.assembled) if draft.settings.factorize else draft.assembled
    return replace(draft, factorized=plan)


def tell(draft: Draft) -> str:
    emits = [emit for tree in draft.factorized.trees for node in tree.walk() for emit in node.emits]
    into_groups = [emit for emit in emits if emit.factorization or emit.why_built]
    folded = sum(emit.factorization is not None for emit in into_groups)
    return f"{folded} of {count_of(len(into_groups), 'last step')} into groups folded" if into_groups else "no groups"


def choose_factorizations(plan: SharedPlan) -> SharedPlan:
    """The plan with every emit into groups factorized that can be; of the others it says why not."""
    group_by_id = {group.id: group for group in plan.groups}
    if not group_by_id:
        return plan
    trees = (
        replace(tree, children=tuple(_factorized(node, group_by_id) for node in tree.children)) for tree in plan.trees
    )
    return replace(plan, trees=tuple(trees))


def _factorized(node: ProbeNode, group_by_id: Mapping[str, GroupPlan]) -> ProbeNode:
    emits = []
    for emit in node.emits:
        group = group_by_id.get(emit.into or "")
        chosen = emit if group is None else _choose(node, emit, group)
        emits.append(replace(emit, why_built=chosen) if isinstance(chosen, WhyBuilt) else chosen)
    children = tuple(_factorized(child, group_by_id) for child in node.children)
    return replace(node, emits=tuple(emits), children=children)


def _choose(node: ProbeNode, emit: Emit, group: GroupPlan) -> Emit | WhyBuilt:
    """The factorized emit, or why there is none. Stored rows, which are prepared once, are folded rather."""
    leg = next(leg for leg in node.legs if (leg.query, leg.start) == (emit.query, emit.start))
    why_not = _why_no_runs(leg)
    if why_not is not None:
        return why_not
    stored = _fold_side(node, leg, emit, group, FoldedSide.STORED)
    if isinstance(stored, Emit):
        return stored
    probing = _fold_side(node, leg, emit, group, FoldedSide.PROBING)
    return probing if isinstance(probing, Emit) else stored.also(probing)


def _why_no_runs(leg: Leg) -> WhyBuilt | None:
    """Why what a row meets need not be a run of an index."""
    if leg.residuals:
        return WhyBuilt("{} is tested on each joined row", leg.residuals[:1])
    if leg.ranges:
        return WhyBuilt("{} must lie in a range of its own for each row", (leg.ranges[0].stored,))
    return None


def _fold_side(node: ProbeNode, leg: Leg, emit: Emit, group: GroupPlan, side: FoldedSide) -> Emit | WhyBuilt:
    if side is FoldedSide.PROBING and len({bound.earlier + bound.later for bound in leg.bounds}) > 1:
        return WhyBuilt(f"{side.value} lie within several time bounds")
    sides = _Sides(node, side)
    columns, folded = [], []
    distinct = {name for values in group.distinct for name, _ in values} | set(group.sketches)
    for column in emit.output:
        tells_groups_apart = column.name in dict(group.keys) or column.name == WINDOW_TIME
        is_each_wanted = tells_groups_apart or column.name in distinct
        if sides.is_folded(column.expression) and not is_each_wanted:
            folded.append(column.name)
            columns.append(column)
            continue
        said = sides.as_walked(column.expression)
        if not sides.is_walked(said):
            if not is_each_wanted:
                return WhyBuilt("{} is made of both sides", (said,))
            why = "tells groups apart" if tells_groups_apart else "is counted by its distinct values"
            return WhyBuilt(f"{side.value} have a say in {{}}, which {why}", (said,))
        columns.append(OutputColumn(column.name, said))
    return replace(emit, output=tuple(columns), factorization=Factorization(side, tuple(folded)))


class _Sides:
    """Which members are walked if `side` is folded, and what the join equates with expressions over them."""

    def __init__(self, node: ProbeNode, side: FoldedSide) -> None:
        self._stored = member_name(node.member)
        self._is_stored_folded = side is FoldedSide.STORED
        self._walked_by_folded: dict[Expression, Expression] = {}
        for probe, key in zip(node.step.probe_keys, node.step.index.keys, strict=True):
            stored = rename_relations(key, {ROW: self._stored})
            folded, walked = (stored, probe) if self._is_stored_folded else (probe, stored)
            # Floating point numbers are equal without being the same: 0.0 and -0.0.
            if not key.type.is_floating:
                self._walked_by_folded.setdefault(folded, walked)

    def is_walked(self, expression: Expression) -> bool:
        """Constants are, too."""
        names = relations_of(expression)
        return self._stored not in names if self._is_stored_folded else names <= {self._stored}

    def is_folded(self, expression: Expression) -> bool:
        names = relations_of(expression)
        return bool(names) and (names == {self._stored} if self._is_stored_folded else self._stored not in names)

    def as_walked(self, expression: Expression) -> Expression:
        """The same value, as far as possible said of the walked side."""
        return _said(expression, self._walked_by_folded)


def _said(expression: Expression, said: Mapping[Expression, Expression]) -> Expression:
    if expression in said:
        return said[expression]
    if isinstance(expression, Call):
        return replace(expression, args=tuple(_said(arg, said) for arg in expression.args))
    return expression
