"""How rows find each other in the plan of all queries, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.describe.names import Member, lookup_of, of_members, stored_member, stored_text
from dovetail.engine.explain.records.steps import (
    AnswerExplained,
    CountedRows,
    ExpectedRows,
    ProbeExplained,
    Purpose,
    StepExplained,
)
from dovetail.engine.explain.records.stores import KeptUntil
from dovetail.engine.observe.step_tallies import edge_of_step
from dovetail.plan.probe_tree import Emit, Leg, ProbeNode, ProbeTree
from dovetail.plan.shared_plan import SharedPlan
from dovetail.query.expression import TRUE
from dovetail.stats.estimate import Estimate

AskedTree = tuple[Purpose, KeptUntil | None, str, ProbeTree]
"""What rows take the tree for, what decides them if anything must, which rows these are, and the tree."""
_SEMI = (Purpose.HAS_PARTNER, Purpose.FINDS_EARLIER, Purpose.HAD_NO_PARTNER)


def asked_trees(plan: SharedPlan) -> Iterator[AskedTree]:
    """Everything that queries ask of stores, and what for."""
    for tree in plan.trees:
        yield Purpose.PAIRS, None, "new", tree
    for lone in plan.lone_rows:
        yield Purpose.LONE, KeptUntil(lone.partner_stream, lone.upper_us / 1e6), "decided", lone.tree
    for matched in plan.matched_rows:
        for purpose, tree in zip(_SEMI, matched.trees, strict=True):
            yield purpose, None, "matched" if purpose is Purpose.HAD_NO_PARTNER else "new", tree


def describe_probes(look: Look) -> tuple[ProbeExplained, ...]:
    return tuple(_probe(look, *asked) for asked in asked_trees(look.plan))


def _probe(look: Look, purpose: Purpose, decided_by: KeptUntil | None, rows: str, tree: ProbeTree) -> ProbeExplained:
    start = stored_member(look, tree.start)
    return ProbeExplained(
        start=tree.start,
        name=start.name,
        queries=look.names(tree.legs),
        maintains=look.maintained(tree.legs),
        steps=tuple(describe_step(look, node, (tree.start,)) for node in tree.children),
        answers=_answers(look, tree.legs, tree.emits, (start,)),
        purpose=purpose,
        decided_by=decided_by,
        rows=rows,
    )


def describe_step(look: Look, node: ProbeNode, path: tuple[str, ...], *, is_followed: bool = True) -> StepExplained:
    """`path` are the stores of the probing members; the steps that follow are part of it if `is_followed`."""
    cost = look.priced.cost_of(node)
    found, probing = cost.found_rows, cost.probing_rows
    members = tuple(stored_member(look, store) for store in path)
    target = stored_member(look, node.step.target)
    maintains = look.maintained(node.legs)
    return StepExplained(
        step=node.id,
        member=node.member,
        store=node.step.target,
        index=node.step.index.id,
        probe_keys=tuple(map(str, node.step.probe_keys)),
        lookup=lookup_of(node, members, target),
        visibility=node.step.visibility.value,
        queries=look.names(node.legs),
        maintains=maintains,
        keeps_up=tuple(stored_member(look, store).name for store in maintains),
        last_batch=_counted(look, node),
        expected=ExpectedRows(probing, found, found / probing if probing else None, look.priced.basis_of(node)),
        observed_rows_per_probing_row=look.stats.step(node.id),
        match=_match(look, node, path),
        cost_ms=cost.cost_s * 1e3,
        answers=_answers(look, node.legs, node.emits, (*members, target)),
        steps=tuple(describe_step(look, child, (*path, node.step.target)) for child in node.children if is_followed),
    )


def _counted(look: Look, node: ProbeNode) -> CountedRows | None:
    counted = look.step_by_node.get(node.id)
    return None if counted is None else CountedRows(counted.looked_up_rows, counted.matched_rows)


def _match(look: Look, node: ProbeNode, path: tuple[str, ...]) -> Estimate | None:
    """How probable it is that two rows meet there by their keys; nobody counts that of rows of intermediates."""
    streams = look.stream_by_store
    if not node.step.index.keys or not {*path, node.step.target} <= set(streams):
        return None
    return look.stats.match(edge_of_step(node, [streams[store] for store in path], streams[node.step.target]))


def _answers(
    look: Look, legs: Sequence[Leg], emits: Sequence[Emit], members: Sequence[Member]
) -> tuple[AnswerExplained, ...]:
    emit_by_taker = {(emit.query, emit.start): emit for emit in emits}
    taking = [(leg, emit_by_taker.get((leg.query, leg.start))) for leg in legs]
    return tuple(
        AnswerExplained(
            query=", ".join(look.served.names([leg.query])) if leg.query in look.live_by_id else None,
            into=emit.into,
            selection=None if leg.selection == TRUE else str(leg.selection),
            sql=None if leg.selection == TRUE else stored_text(leg.selection, members[-1]),
            folded=emit.factorization.side.value if emit.factorization else None,
            why_built=why_built(emit, members),
        )
        for leg, emit in taking
        if emit is not None
    )


def why_built(emit: Emit, members: Sequence[Member]) -> str | None:
    return None if emit.why_built is None else emit.why_built.text(lambda expression: of_members(expression, members))
