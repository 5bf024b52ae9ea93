"""The records of EXPLAIN as text. Long lists are cut here; the JSON form has all of them."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records import (
    AnswerExplained,
    ChangeExplained,
    CostExplained,
    GroupsExplained,
    IndexExplained,
    IntermediateExplained,
    PartitioningExplained,
    PathExplained,
    PlacementExplained,
    PlanExplained,
    ProbeExplained,
    QueryCostExplained,
    QueryExplained,
    SharedStep,
    StepExplained,
    StoreExplained,
)
from dovetail.stats.estimate import Estimate, number_text

MAX_NAMES = 6
MAX_LINES = 8
UNKNOWN = "unknown"


def plan_text(plan: PlanExplained) -> TextTree:
    head = f"shared plan, epoch {plan.epoch}: {len(plan.queries)} queries, {plan.hops} hops"
    kept = [TextTree("intermediates", tuple(map(_intermediate, plan.intermediates)))] if plan.intermediates else []
    coming = [_lines("changes with the next batch", plan.next_change)] if plan.next_change else []
    return TextTree(
        head,
        (
            TextTree("stores", tuple(_store(store) for store in plan.stores)),
            *kept,
            *([TextTree("groups", tuple(map(_groups, plan.groups)))] if plan.groups else []),
            TextTree(_partitioning(plan.partitioning), _below_partitioning(plan.partitioning)),
            TextTree("probes", tuple(map(_probe, plan.probes))),
            _cost(plan.cost),
            _change(plan.last_change),
            *coming,
        ),
    )


def query_text(query: QueryExplained) -> TextTree:
    head = f"query {query.query}: {query.state}" + (f" ({query.error})" if query.error else "")
    since = UNKNOWN if query.complete_from is None else f"batch {query.complete_from}"
    said = (TextTree(f"sql: {query.sql}"), TextTree(f"answers complete from: {since}"))
    if query.cost is None:
        return TextTree(head, (*said, TextTree("not part of the plan")))
    stores = (_store(each.store, _shared_with(each.shared_with)) for each in query.stores)
    kept = [TextTree("intermediates", tuple(map(_intermediate, query.intermediates)))] if query.intermediates else []
    growing = [_lines("kept for ever: this state grows without bound", query.growing_groups)]
    return TextTree(
        head,
        (
            *said,
            TextTree("stores", tuple(stores)),
            *([] if query.groups is None else [TextTree("groups", (_groups(query.groups),))]),
            *(growing if query.growing_groups else ()),
            TextTree("probes", tuple(map(_path, query.paths))),
            *kept,
            TextTree(f"cost: {_query_cost(query.cost)}"),
        ),
    )


def _store(store: StoreExplained, shared: str | None = None) -> TextTree:
    wanted = "all rows" if store.keeps_all_rows else "rows that a selection wants"
    if store.retention is None:
        kept = "kept for ever: this store grows without bound"
    else:
        ends = (f"watermark({each.stream}) > time + {each.after_s:g} s" for each in store.retention)
        kept = f"kept until {' and '.join(ends)}" if store.retention else "kept for the batch only"
    line = f"{store.store} ({', '.join(store.columns)}): {wanted}; {kept}" + (f"; {shared}" if shared else "")
    selections = [TextTree(f"{each.selection}: passes {each.passes}") for each in store.selections]
    return TextTree(line, (_rows(store), *map(_index, store.indexes), *_cut(selections, "selections")))


def _rows(store: StoreExplained) -> TextTree:
    rows = store.rows
    figures = [(rows.stored, "stored")]
    if not store.is_intermediate:
        figures[:0] = [
            (rows.a_batch, "a batch"),
            (rows.a_second, "a second of event time"),
            (rows.late_share, "of them late"),
            (rows.live, "live"),
        ]
    texts = [f"{_figure(figure)} {what}" for figure, what in figures]
    return TextTree(f"rows: {', '.join(texts)} in {number_text(store.stored_bytes)} bytes")


def _index(index: IndexExplained) -> TextTree:
    text = f"index {index.index}; distinct keys: {_figure(index.distinct_keys)}"
    if index.largest_key_share is not None:
        text += f"; frequent keys: {index.frequent_keys}, the first has {index.largest_key_share:.1%} of the rows"
    return TextTree(f"{text}; routed by {index.routing.routing} ({index.routing.because})")


def _intermediate(kept: IntermediateExplained) -> TextTree:
    line = f"{kept.store}: joins {', '.join(kept.members)} from batch {kept.joins_rows_from_batch} on"
    users = [
        f"new {user.start} of {user.query} "
        + ("probes it" if user.probes_now else f"does not yet: {user.waits_because}")
        for user in kept.users
    ]
    expected = f"{number_text(kept.expected_rows)} rows, {number_text(kept.expected_bytes)} bytes"
    observed = f"{_figure(kept.observed_rows)} rows, {number_text(kept.observed_bytes)} bytes"
    return TextTree(
        line,
        (
            TextTree(f"expected {expected}; observed {observed}; upkeep {_ms(kept.upkeep_ms)} a batch"),
            *_cut([TextTree(user) for user in users], "users"),
        ),
    )


def _groups(groups: GroupsExplained) -> TextTree:
    kept = "kept for ever" if groups.pane_s is None else f"in panes of {groups.pane_s:g} s, kept until windows close"
    keys = f"by {', '.join(groups.keys)}" if groups.keys else "one group"
    columns = [f"partial {column}" for column in groups.partial_columns]
    details = [f"and {detail}" for detail in groups.details]
    return TextTree(
        f"{groups.store}: {keys}, {kept}; for {_names(groups.queries)}",
        (
            TextTree(f"rows: {groups.stored_rows} stored in {number_text(groups.stored_bytes)} bytes"),
            *_cut([TextTree(text) for text in (*columns, *details)], "columns"),
        ),
    )


def _partitioning(partitioning: PartitioningExplained) -> str:
    counts = sorted(set(partitioning.key_groups_by_partition))
    each = " or ".join(map(str, counts))
    return (
        f"partitionings: every store is indexed by every key that it is probed by; "
        f"{partitioning.key_groups} key groups are spread over {partitioning.partitions} partitions, {each} in each"
    )


def _below_partitioning(partitioning: PartitioningExplained) -> tuple[TextTree, ...]:
    units = () if partitioning.units is None else (TextTree(str(partitioning.units)),)
    return (*units, *_placement(partitioning.placement))


def _placement(placement: PlacementExplained | None) -> tuple[TextTree, ...]:
    if placement is None:
        return ()
    imbalance = UNKNOWN if placement.imbalance is None else f"{placement.imbalance:.2f}"
    expected = UNKNOWN if placement.expected_shipped_rows is None else f"{placement.expected_shipped_rows:,.0f}"
    objective = f"{_ms(placement.objective_ms)} a batch expected, at least {_ms(placement.least_ms)} by any placement"
    lines = [
        f"placed to share: {objective}; slowest over mean {imbalance}",
        f"rows shipped in the last batch: {expected} expected, {_number(placement.shipped_rows)} counted",
        f"placed evenly; sought {placement.times_sought} times"
        if placement.placed_in_batch is None
        else f"since batch {placement.placed_in_batch}, as {placement.because}",
    ]
    if placement.expected_gain is not None:
        lines.append(
            f"another placement would save {placement.expected_gain:.0%}; it was better in {placement.proven_batches} "
            f"batches in a row and is taken after {placement.needed_batches}"
        )
    return tuple(TextTree(line) for line in (*lines, *(f"overlaps of {each}" for each in placement.overlaps)))


def _probe(probe: ProbeExplained) -> TextTree:
    return TextTree(f"{probe.rows} {probe.start} ({_takers(probe)})", tuple(map(_step, probe.steps)))


def _step(step: StepExplained) -> TextTree:
    return TextTree(
        f"{_step_line(step)} ({_takers(step)})",
        (
            TextTree(_step_figures(step)),
            *_cut([_answer(each) for each in step.answers], "answers"),
            *map(_step, step.steps),
        ),
    )


def _step_line(step: StepExplained) -> str:
    return f"m{step.member} = {step.store}{step.index} by ({', '.join(step.probe_keys)}), {step.visibility}"


def _step_figures(step: StepExplained) -> str:
    expected = step.expected
    per_row = UNKNOWN if expected.rows_per_probing_row is None else number_text(expected.rows_per_probing_row)
    match = "" if step.match is None else f"match {step.match}; "
    return (
        f"a row finds {per_row} expected ({expected.basis.value}), "
        f"{_figure(step.observed_rows_per_probing_row)} observed; {match}expected a batch: "
        f"{number_text(expected.probing_rows)} rows find {number_text(expected.found_rows)} in {_ms(step.cost_ms)}"
    )


def _answer(answer: AnswerExplained) -> TextTree:
    said = f"emit {answer.query}" if answer.into is None else f"store into {answer.into}"
    said += f" where {answer.selection}" if answer.selection else ""
    return TextTree(said + _how_joined(answer.folded, answer.why_built))


def _how_joined(folded: str | None, why_built: str | None) -> str:
    """Of rows that are only aggregated, whether they are built."""
    if folded is not None:
        return f": factorized, {folded} are folded"
    return "" if why_built is None else f": joined rows are built, as {why_built}"


def _path(path: PathExplained) -> TextTree:
    below: tuple[TextTree, ...] = (TextTree(f"emit{_how_joined(path.folded, path.why_built)}"),)
    for step in reversed(path.steps):
        figures = f"{_step_figures(step.step)}, the query's share {_ms(step.share_ms)}"
        below = (TextTree(_shared_step(step), (TextTree(figures), *below)),)
    name = path.start if path.start == path.store else f"{path.start}, from {path.store}"
    return TextTree(f"{path.rows} {name}", below)


def _shared_step(shared: SharedStep) -> str:
    upkeep = f"; part of the upkeep of {_names(shared.step.maintains)}" if shared.step.maintains else ""
    return f"{_step_line(shared.step)}; {_shared_with(shared.shared_with)}{upkeep}"


def _cost(cost: CostExplained) -> TextTree:
    saved = "" if cost.saving_share is None else f" ({cost.saving_share:.0%})"
    line = (
        f"cost: {_ms(cost.total_ms)} a batch ({cost.basis.value}); queries one by one {_ms(cost.alone_ms)}; "
        f"saving {_ms(cost.saving_ms)}{saved}"
    )
    return TextTree(line, _cut([TextTree(f"{each.query}: {_query_cost(each)}") for each in cost.queries], "queries"))


def _query_cost(cost: QueryCostExplained) -> str:
    of_plan, of_alone = (
        UNKNOWN if share is None else f"{share:.0%}" for share in (cost.share_of_plan, cost.share_of_alone)
    )
    return (
        f"share {_ms(cost.share_ms)} a batch ({cost.basis.value}), {of_plan} of the plan; "
        f"alone {_ms(cost.alone_ms)}, of which the share is {of_alone}"
    )


def _change(change: ChangeExplained | None) -> TextTree:
    if change is None:
        return TextTree("last change of the plan: none since this process began")
    expected, observed = (
        f"{_ms(before)} a batch before, {_ms(after)} after{_gain(before, after)}"
        for before, after in (
            (change.expected_before_ms, change.expected_after_ms),
            (change.observed_before_ms, change.observed_after_ms),
        )
    )
    rows = " and ".join(_number(rows) for rows in (change.input_rows_before, change.input_rows_after))
    return TextTree(
        f"last change of the plan: epoch {change.epoch} with batch {change.batch}",
        (
            _lines("because", change.reasons or (UNKNOWN,)),
            TextTree(f"expected: {expected}"),
            TextTree(f"observed: {observed}; input rows {rows}"),
        ),
    )


def _gain(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before:
        return ""
    change = after / before - 1
    return f" ({abs(change):.0%} {'less' if change < 0 else 'more'})"


def _lines(head: str, lines: Sequence[str]) -> TextTree:
    return TextTree(head, _cut([TextTree(line) for line in lines], "reasons"))


def _cut(trees: Sequence[TextTree], what: str) -> tuple[TextTree, ...]:
    more = [TextTree(f"{len(trees) - MAX_LINES} more {what}")] if len(trees) > MAX_LINES else []
    return (*trees[:MAX_LINES], *more)


def _takers(taken: ProbeExplained | StepExplained) -> str:
    parts = []
    if taken.queries:
        count = len(taken.queries)
        parts.append(f"for {taken.queries[0]}" if count == 1 else f"shared by {count}: {_names(taken.queries)}")
    if taken.maintains:
        parts.append(f"upkeep of {_names(taken.maintains)}")
    return "; ".join(parts)


def _shared_with(names: Sequence[str]) -> str:
    return f"shared with {_names(names)}" if names else "not shared"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")


def _figure(figure: Estimate | None) -> str:
    return UNKNOWN if figure is None else str(figure)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else number_text(value)


def _ms(value: float | None) -> str:
    return UNKNOWN if value is None else f"{number_text(value)} ms"
