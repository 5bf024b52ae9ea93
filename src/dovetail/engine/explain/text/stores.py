"""What is kept, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.stores import (
    GroupsExplained,
    IndexExplained,
    IntermediateExplained,
    KeptUntil,
    RoutingExplained,
    StoreExplained,
)
from dovetail.engine.explain.text.words import (
    and_list,
    counted,
    cut,
    figure,
    key_names,
    milliseconds,
    names,
    number,
    percentage,
    seconds,
    share,
    size,
)


def store_tree(store: StoreExplained, shared_with: Sequence[str] | None = None) -> TextTree:
    """Of a store in the plan of all, or in one query's, which shares it with others."""
    columns = f"{', '.join(store.columns)} of {_wanted(store)}"
    used = f"used by {names(store.queries)}" if shared_with is None else shared_words(shared_with)
    held = f"{figure(store.rows.stored)} rows, {size(store.stored_bytes)}"
    indexes = (text for text in map(_index, store.indexes) if text)
    return TextTree(
        f"{store.name}: keeps {columns} {until_words(store.retention)}; {held}; {used}",
        (*map(TextTree, (*_arriving(store), *indexes)), *_selections(store)),
    )


def shared_words(others: Sequence[str]) -> str:
    return f"shared with {names(others)}" if others else "not shared"


def _wanted(store: StoreExplained) -> str:
    if store.keeps_all_rows:
        wanted = "all rows"
    elif len(store.selections) == 1:
        (only,) = store.selections
        wanted = f"rows with {only.sql} ({percentage(only.passes)})"
    else:
        wanted = "rows that a query wants"
    if store.window is None:
        return wanted
    size_s, slide_s = store.window.size_s, store.window.slide_s
    every = "" if size_s == slide_s else f" every {seconds(slide_s)}"
    return f"{wanted}, once for each window of {seconds(size_s)}{every},"


def until_words(retention: Sequence[KeptUntil] | None) -> str:
    """For how long rows are kept.

    >>> until_words([KeptUntil("a", 5.0), KeptUntil("b", 0.0), KeptUntil("c", 0.0)])
    'until the watermark of a is 5 s past them and those of b and c have passed them'
    """
    if retention is None:
        return "for ever (it grows without bound)"
    if not retention:
        return "only while their batch runs"
    streams_by_wait: dict[float, list[str]] = {}
    for each in sorted(retention, key=lambda each: -each.after_s):
        streams_by_wait.setdefault(each.after_s, []).append(each.stream)
    parts: list[str] = []
    for after_s, streams in streams_by_wait.items():
        subject = f"the watermark of {streams[0]}" if not parts else f"that of {streams[0]}"
        if len(streams) > 1:
            subject = f"{'those' if parts else 'the watermarks'} of {and_list(streams)}"
        parts.append(f"{subject} {_passed(after_s, is_plural=len(streams) > 1)}")
    return f"until {and_list(parts)}"


def _passed(after_s: float, *, is_plural: bool) -> str:
    if after_s == 0:
        return f"{'have' if is_plural else 'has'} passed them"
    verb = "are" if is_plural else "is"
    return f"{verb} {seconds(after_s)} past them" if after_s > 0 else f"{verb} within {seconds(-after_s)} of them"


def _arriving(store: StoreExplained) -> Iterator[str]:
    """Rates are by the clock; event time runs as it likes."""
    rows = store.rows
    if store.bad_rows:
        yield f"{counted(store.bad_rows, 'bad row')} so far, the last because {store.last_bad_row}"
    if rows.a_batch is None:
        yield f"no batch has brought rows yet; {figure(rows.live)} are expected to be kept"
        return
    by_clock = "" if rows.a_clock_second is None else f", {figure(rows.a_clock_second)} a second"
    in_events = "" if rows.a_second is None else f" ({figure(rows.a_second)} a second of event time)"
    late = "" if rows.late_share is None else f"; {percentage(rows.late_share)} late"
    yield f"arriving: {figure(rows.a_batch)} rows a batch{by_clock}{in_events}{late}"


def _index(index: IndexExplained) -> str:
    """Empty of one that is only walked through: who walks says so."""
    if not index.keys:
        return "" if index.order is None else f"sorted by {index.order}"
    ordered = "" if index.order is None else f", then sorted by {index.order}"
    text = f"indexed by {key_names(index.keys)}{ordered}: {figure(index.distinct_keys)} different keys"
    if index.largest_key_share is not None:
        frequent = counted(index.frequent_keys or 0, "frequent key")
        text += f"; {frequent}, the first with {share(index.largest_key_share)} of the rows"
    return f"{text}{_routing(index.routing)}"


def _routing(routing: RoutingExplained) -> str:
    """Nothing of the usual one, by hash."""
    if routing.subgroups is not None:
        among = "partitions" if routing.subgroups == 1 else f"partitions of {routing.subgroups} groups"
        return f"; dealt to {among} at random, because {routing.because}"
    split = [
        f"{counted(count, 'key')} with many {side} rows"
        for count, side in ((routing.split_stored, "stored"), (routing.split_probing, "arriving"))
        if count
    ]
    return f"; {and_list(split)} dealt to all partitions, because {routing.because}" if split else ""


def _selections(store: StoreExplained) -> tuple[TextTree, ...]:
    """One alone is told with the store."""
    if len(store.selections) == 1 and not store.keeps_all_rows:
        return ()
    passing = [TextTree(f"{each.sql}: {percentage(each.passes)} of the rows") for each in store.selections]
    return cut(passing, "conditions")


def intermediate_tree(kept: IntermediateExplained, store: StoreExplained | None = None) -> TextTree:
    """With how long it is kept and how it is found, where all stores are told of."""
    users = [
        TextTree(
            f"new rows of {user.start} look it up for {user.query}"
            if user.probes_now
            else f"new rows of {user.start} do not look it up yet for {user.query}: {user.waits_because}"
        )
        for user in kept.users
    ]
    held = f"{figure(kept.observed_rows)} rows, {size(kept.observed_bytes)}"
    expected = f"expected {number(kept.expected_rows)} rows, {size(kept.expected_bytes)}"
    until = "" if store is None else f" {until_words(store.retention)}"
    indexes = () if store is None else map(_index, store.indexes)
    return TextTree(
        f"{kept.name}: keeps rows that were joined from batch {kept.joins_rows_from_batch} on{until}; {held}",
        (
            TextTree(f"{expected}; writing them takes {milliseconds(kept.upkeep_ms)} a batch (expected)"),
            *(TextTree(text) for text in indexes if text),
            *cut(users, "users"),
        ),
    )


def groups_tree(groups: GroupsExplained, own: str | None = None) -> TextTree:
    """In the plan of all, or of the query `own`."""
    keys = f"groups by {and_list(groups.keys)}" if groups.keys else "one group of all rows"
    kept = "for ever" if groups.pane_s is None else f"in panes of {seconds(groups.pane_s)} until their windows close"
    held = f"{counted(groups.stored_rows, 'row')}, {size(groups.stored_bytes)}"
    others = [name for name in groups.queries if name != own]
    used = f"used by {names(groups.queries)}" if own is None else shared_words(others)
    return TextTree(f"{keys}: keeps {and_list(groups.keeps)} {kept}; {held}; {used}")
