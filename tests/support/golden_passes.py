"""Small inputs to the optimizer's passes as text, and what each pass makes of them as text.

A file is named by its pass and holds one fact a line, then a rule, then what the pass gives:

    rows r = 100                     a stream's rows in its window
    match r.x=s.x = 0.01             how probable it is that two rows meet
    wanted r probes s, t: 10         for choose_ranks: a start, an intermediate's members, a weight
    given ...                        what a draft begins with: see golden_drafts.py
    anything else: SELECT ...        a query by its name
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dovetail.core.text_tree import TextTree
from dovetail.frontend.compile_sql import compile_sql
from dovetail.optimizer.decisions import Decisions, keep_intermediates
from dovetail.optimizer.draft import Draft
from dovetail.optimizer.intermediates.candidates import intermediate_of, keepable_subsets, starts_of
from dovetail.optimizer.intermediates.collapse import StandIn, collapse
from dovetail.optimizer.joint.choose_ranks import WantedProbe, choose_ranks
from dovetail.optimizer.joint.decide_jointly import JointOptions, decide_jointly, joint_view
from dovetail.optimizer.passes.choose_probe_orders import choose_probe_order, estimated_rows
from dovetail.optimizer.passes.derive_forms import derive_forms
from dovetail.optimizer.passes.share_probe_prefixes import taken_orders
from dovetail.optimizer.pipeline import plan_queries
from dovetail.optimizer.pricing.cost_alone import costs_alone
from dovetail.optimizer.pricing.running_plan import running_plan
from dovetail.optimizer.pricing.share_costs import share_costs
from dovetail.plan.live_query import LiveQuery
from dovetail.plan.placement import even_placement
from dovetail.plan.probe_tree import Emit
from dovetail.query.stream import Stream
from dovetail.query.types import BIGINT, TIMESTAMP
from dovetail.stats.catalog import StatsCatalog
from dovetail.stats.unit_costs import UnitCosts
from tests.support.golden_drafts import DRAFT_PASSES, check_broken, draft_of

RULE = "----\n"
STREAMS = {
    name: Stream(name, (("x", BIGINT), ("y", BIGINT), ("v", BIGINT), ("ts", TIMESTAMP)), "ts") for name in "rstu"
}
UNITS = UnitCosts(
    probed=1e-6,
    searched=0.0,
    found=1e-6,
    tested=0.0,
    shipped=2e-6,
    built=1e-6,
    stored=2e-6,
    indexed=1e-6,
    node=1e-5,
    message=0.0,
    file=0.0,
)
"""Round numbers of their own: measured ones would change every file with every measurement."""
BUDGET_S = 20.0
"""Far more than such small cases need: what ends early because it is proven best is the same every time."""

_ROWS = re.compile(r"rows (\w+) = (\S+)")
_MATCH = re.compile(r"match (\S+=\S+) = (\S+)")
_WANTED = re.compile(r"wanted (\w+) probes ([\w, ]+): (\S+)")


@dataclass
class PassInput:
    queries: list[LiveQuery] = field(default_factory=list)
    rows: dict[str, float] = field(default_factory=dict)
    match: dict[str, float] = field(default_factory=dict)
    wanted: list[WantedProbe] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    @property
    def stats(self) -> StatsCatalog:
        return StatsCatalog(rows_in_window=self.rows, key_match=self.match)


def read_input(text: str) -> PassInput:
    found = PassInput()
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        if rows := _ROWS.fullmatch(line):
            found.rows[rows[1]] = float(rows[2])
        elif match := _MATCH.fullmatch(line):
            found.match[match[1]] = float(match[2])
        elif wanted := _WANTED.fullmatch(line):
            found.wanted.append(WantedProbe(wanted[1], frozenset(wanted[2].split(", ")), float(wanted[3])))
        elif line.startswith("given "):
            found.facts.append(line.removeprefix("given "))
        else:
            name, sql = line.split(": ", 1)
            found.queries.append(LiveQuery(name, name, compile_sql(sql, STREAMS, timezone="UTC")))
    return found


def render_pass(path: Path) -> str:
    """What the pass that the file's folder names gives for the file's input."""
    text = path.read_text(encoding="utf-8").partition(RULE)[0]
    return f"{PASSES[path.parent.name](read_input(text))}\n"


def render_all(folder: Path) -> str:
    return "\n".join(f"{path.parent.name}/{path.name}\n{render_pass(path)}" for path in sorted(folder.glob("*/*.txt")))


def _shared_prefixes(given: PassInput) -> TextTree:
    plan = plan_queries(tuple(given.queries), STREAMS, even_placement(8, 2), epoch=1, stats=given.stats)
    _, probes = plan.text_tree({live.id: live.name for live in given.queries}).children
    return probes


def _probe_orders(given: PassInput) -> TextTree:
    lines = []
    for live in given.queries:
        for relation in live.query.relations:
            order = choose_probe_order(live, relation.alias, given.stats, lambda _joined, _alias: False).aliases
            rows = (estimated_rows(live.query, list(order[:n]), given.stats) for n in range(1, len(order)))
            lines.append(f"{live.name}: {' -> '.join(order)}; ships {', '.join(f'{each:.6g}' for each in rows)}")
    return _lines("orders", lines)


def _collapsed(given: PassInput) -> TextTree:
    trees = []
    for live in given.queries:
        for aliases in keepable_subsets(live):
            stand_in = StandIn(aliases, intermediate_of(live, aliases, STREAMS))
            form = collapse(live, [stand_in], STREAMS).query
            lines = [f"starts that may probe it: {', '.join(starts_of(live, aliases)) or 'none'}"]
            lines += [f"joined by {each.a_side} = {each.b_side}" for each in form.equalities]
            lines += [f"left to test: {residual}" for residual in form.residuals]
            trees.append(_lines(f"{live.name}: {stand_in.intermediate.id}", lines))
    return TextTree("could be kept" if trees else "nothing could be kept", tuple(trees))


def _ranks(given: PassInput) -> TextTree:
    order = choose_ranks(sorted(given.rows), given.wanted, given.rows)
    place = {store: number for number, store in enumerate(order)}
    lines = []
    for probe in given.wanted:
        may = all(place[member] < place[probe.start] for member in probe.members)
        lines.append(f"{probe.start} {'may' if may else 'may not'} probe ({' * '.join(sorted(probe.members))})")
    return _lines(f"ranks: {' < '.join(order)}", lines)


def _joint_decision(given: PassInput) -> TextTree:
    decision = decide_jointly(tuple(given.queries), STREAMS, given.stats, JointOptions(BUDGET_S, units=UNITS))
    decided = decision.decisions
    orders = [f"{query}: {' -> '.join(order)}" for (query, _), order in decided.orders.items()]
    kept = [
        f"{each.intermediate.id} for new {', '.join(use.wanted_starts)} of {use.query}"
        for each in decided.intermediates
        for use in each.uses
    ]
    return TextTree(
        f"cost {decision.cost * 1e3:.6g} ms, greedy {decision.greedy_cost * 1e3:.6g} ms",
        (
            _lines("orders", orders),
            _lines("kept" if kept else "nothing is kept", kept),
            TextTree(f"ranks: {' < '.join(decided.rank_order) or 'by name'}"),
        ),
    )


def _cost_shares(given: PassInput) -> TextTree:
    view = joint_view(tuple(given.queries), given.stats, JointOptions(BUDGET_S, units=UNITS))
    plan = decide_jointly(tuple(given.queries), STREAMS, given.stats, JointOptions(BUDGET_S, units=UNITS)).plan
    return share_costs(view, plan, costs_alone(view, plan, given.stats)).text_tree()


def _running(given: PassInput) -> TextTree:
    """Everything that can be kept is; a query whose name begins with «ready» may probe it already."""
    queries = tuple(given.queries)
    view = joint_view(queries, given.stats, JointOptions(BUDGET_S, units=UNITS))
    wanted = keep_intermediates(queries, STREAMS, given.stats, 0).intermediates
    settled = tuple(
        replace(
            kept,
            uses=tuple(
                replace(use, starts=use.wanted_starts if use.query.startswith("ready") else ()) for use in kept.uses
            ),
        )
        for kept in wanted
    )
    decisions = Decisions(intermediates=settled)
    forms = derive_forms(queries, STREAMS, decisions)
    orders = taken_orders(forms.running, given.stats, forms.collapsed, decisions.orders)
    running = running_plan(view, decisions, STREAMS, orders)
    users = [f"{join}: {', '.join(sorted(queries))}" for join, queries in running.wanted_by.items()]
    return TextTree("running", (running.plan.text_tree(), _lines("wanted by", users)))


def _factorizations(given: PassInput) -> TextTree:
    trees = []
    for live in given.queries:
        plan = plan_queries((live,), STREAMS, even_placement(8, 2), epoch=1, stats=given.stats, factorize=True)
        lines = [
            f"new {tree.start} > {node.step.target}: {_said_of(emit)}"
            for tree in plan.trees
            for node in tree.walk()
            for emit in node.emits
        ]
        trees.append(_lines(live.name, lines))
    return TextTree("last steps", tuple(trees))


def _said_of(emit: Emit) -> str:
    if emit.factorization is None:
        return f"rows are built: {emit.why_built}" if emit.why_built else "rows are built"
    folded = set(emit.factorization.folded)
    said = (f"{'folded' if each.name in folded else 'walked'} {each.expression}" for each in emit.output)
    return f"{emit.factorization.side.value} are folded: {', '.join(said)}"


def _lines(head: str, lines: list[str]) -> TextTree:
    return TextTree(head, tuple(map(TextTree, lines)))


def _of_draft(tell: Callable[[Draft], TextTree]) -> Callable[[PassInput], TextTree]:
    return lambda given: tell(draft_of(given.queries, STREAMS, given.stats, given.facts))


def _checked(given: PassInput) -> TextTree:
    return check_broken(draft_of(given.queries, STREAMS, given.stats, given.facts), given.facts)


PASSES: dict[str, Callable[[PassInput], TextTree]] = {
    **{name: _of_draft(tell) for name, tell in DRAFT_PASSES.items()},
    "check_plan": _checked,
    "share_probe_prefixes": _shared_prefixes,
    "choose_probe_orders": _probe_orders,
    "collapse": _collapsed,
    "choose_ranks": _ranks,
    "decide_jointly": _joint_decision,
    "share_costs": _cost_shares,
    "running_plan": _running,
    "choose_factorizations": _factorizations,
}
