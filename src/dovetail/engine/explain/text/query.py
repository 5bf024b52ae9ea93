"""One query's part of the plan, in words."""

from __future__ import annotations

import textwrap

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.plan import LimitsExplained, QueryExplained
from dovetail.engine.explain.text.costs import query_cost_line
from dovetail.engine.explain.text.steps import path_tree
from dovetail.engine.explain.text.stores import groups_tree, intermediate_tree, store_tree
from dovetail.engine.explain.text.words import lines

_STATES = {
    "pending": "is accepted and starts with the next batch",
    "running": "runs",
    "quarantined": "is stopped (quarantined)",
    "dropped": "is dropped",
    "not created": "is not created; if it were",
}


def query_text(query: QueryExplained) -> TextTree:
    head = f"query {query.query} {_STATES.get(query.state, query.state)}"
    since = [TextTree(query.complete_from_text)] if query.complete_from_text else []
    error = [TextTree("why", tuple(TextTree(line.strip()) for line in query.error.splitlines()))] if query.error else []
    sql = _sql(query.sql)
    if query.cost is None:
        return TextTree(head, (*since, *error, sql, TextTree("it is not part of the plan")))
    kept = (
        *(store_tree(each.store, each.shared_with) for each in query.stores),
        *map(intermediate_tree, query.intermediates),
        *(() if query.groups is None else (groups_tree(query.groups, query.query),)),
    )
    growing = [lines("kept for ever, so this grows without bound", query.growing_groups, "groups")]
    return TextTree(
        head,
        (
            *since,
            *error,
            sql,
            TextTree(f"how its answers are found{_counted_in(query)}", tuple(map(path_tree, query.paths))),
            TextTree("what is kept for it", kept),
            *(growing if query.growing_groups else ()),
            TextTree(query_cost_line(query.cost)),
            *_limits(query.limits),
        ),
    )


def _counted_in(query: QueryExplained) -> str:
    is_counted = any(step.step.last_batch is not None for path in query.paths for step in path.steps)
    return ", with the rows of the last batch" if is_counted else ""


def _text_lines(text: str) -> tuple[TextTree, ...]:
    found = textwrap.dedent(text.expandtabs()).strip().splitlines()
    return tuple(TextTree(line) for line in found if line.strip())


def _sql(text: str) -> TextTree:
    lines_of = _text_lines(text)
    return TextTree(f"sql: {lines_of[0].line}") if len(lines_of) == 1 else TextTree("sql", lines_of)


def _limits(limits: LimitsExplained) -> tuple[TextTree, ...]:
    most = {"answers": limits.max_results_per_batch, "matches on the way": limits.max_pairs_per_batch}
    said = [f"{count:,} {what}" for what, count in most.items() if count is not None]
    return (TextTree(f"limits: it is stopped if a batch brings it more than {' or '.join(said)}"),) if said else ()
