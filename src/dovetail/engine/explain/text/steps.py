"""How rows find each other, in words: each step is a sentence, with its figures below."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.text_tree import TextTree
from dovetail.engine.explain.records.steps import (
    AnswerExplained,
    KeyExplained,
    LookupExplained,
    PathExplained,
    ProbeExplained,
    Purpose,
    SharedStep,
    StepExplained,
)
from dovetail.engine.explain.text.stores import shared_words
from dovetail.engine.explain.text.words import (
    and_list,
    cut,
    figure,
    key_names,
    milliseconds,
    names,
    percentage,
    rows,
    seconds,
)

_ANSWERS = {
    Purpose.LONE: "each that finds none is an answer{of}",
    Purpose.HAS_PARTNER: "each that finds some{condition} is an answer{of}",
    Purpose.FINDS_EARLIER: "what is found{condition} may have its first partner: see below",
    Purpose.HAD_NO_PARTNER: "each that finds none is an answer{of}: the new row is its first partner",
}
_VISIBLE = {"earlier batches": "earlier batches", "earlier batches and this one": "this batch and earlier ones"}


def probe_trees(probe: ProbeExplained) -> tuple[TextTree, ...]:
    """Of the plan of all: what rows of one store begin, a tree for each first step."""
    subject = _subject(probe)
    alone = (TextTree(_answer(answer, Purpose.PAIRS, subject)) for answer in probe.answers)
    return (*cut(list(alone), "answers"), *(_step_tree(step, subject, probe.purpose) for step in probe.steps))


def _step_tree(step: StepExplained, subject: str, purpose: Purpose) -> TextTree:
    return TextTree(
        f"{subject} {_sentence(step.lookup, step)} ({_takers(step)})",
        (
            TextTree(_figures(step)),
            *cut([TextTree(_answer(answer, purpose, "each match")) for answer in step.answers], "answers"),
            *(_step_tree(child, "each match", Purpose.PAIRS) for child in step.steps),
        ),
    )


def path_tree(path: PathExplained) -> TextTree:
    """Of one query: what rows of one of its relations do, one step below the other."""
    below: tuple[TextTree, ...] = (TextTree(_path_answer(path)),)
    for place, step in reversed(list(enumerate(path.steps))):
        subject = _subject(path) if place == 0 else "each match"
        below = (TextTree(f"{subject} {_sentence(step.lookup, step.step)}", (*_shared_figures(step), *below)),)
    return below[0]


def _subject(start: ProbeExplained | PathExplained) -> str:
    match start.purpose:
        case Purpose.LONE:
            by = start.decided_by
            passed = "" if by is None else f" (the watermark of {by.stream} is {seconds(by.after_s)} past it)"
            return f"each row of {start.name} that can get no more partners{passed}"
        case Purpose.HAD_NO_PARTNER:
            return f"each row of {start.name} so found"
        case _:
            return f"each new row of {start.name}"


def _sentence(lookup: LookupExplained, step: StepExplained) -> str:
    """«looks up payments by order_id: 1,200 looked, 681 found»."""
    last = step.last_batch
    found = "" if last is None else f": {last.looked_up:,} looked, {last.found:,} found"
    return f"{_verb(lookup)}{found}"


def _verb(lookup: LookupExplained) -> str:
    if not lookup.keys:
        if lookup.searched_by is None:
            return f"tries every row of {lookup.name}"
        return f"searches {lookup.name} in the order of {lookup.searched_by}"
    searched = "" if lookup.searched_by is None else f", then in the order of {lookup.searched_by}"
    return f"looks up {lookup.name} {_key_words(lookup.keys)}{searched}"


def _key_words(keys: Sequence[KeyExplained]) -> str:
    """By their names, if both sides have the same.

    >>> _key_words([KeyExplained("x", "x"), KeyExplained("y", "a.y")])
    'by x and a.y'
    >>> _key_words([KeyExplained("x", "a.user")])
    'where x = a.user'
    """
    if all(key.probing.rpartition(".")[2] == key.stored.rpartition(".")[2] for key in keys):
        return f"by {key_names([key.probing for key in keys])}"
    return f"where {' and '.join(f'{key.stored} = {key.probing}' for key in keys)}"


def _figures(step: StepExplained) -> str:
    expected = step.expected
    parts = []
    if step.observed_rows_per_probing_row is not None:
        parts.append(f"lately a row found {figure(step.observed_rows_per_probing_row)}")
    parts.append(
        f"expected {rows(expected.probing_rows)} looked, {rows(expected.found_rows)} found "
        f"in {milliseconds(step.cost_ms)} ({expected.basis.value})"
    )
    if step.match is not None:
        parts.append(f"{percentage(step.match)} of pairs match")
    return "; ".join((*parts, f"sees {_VISIBLE.get(step.visibility, step.visibility)}"))


def _shared_figures(shared: SharedStep) -> tuple[TextTree, ...]:
    tested = [TextTree(f"only if {and_list(shared.conditions)}")] if shared.conditions else []
    upkeep = f"; also keeps up {names(shared.step.keeps_up)}" if shared.step.keeps_up else ""
    paid = f", and pays {milliseconds(shared.share_ms)}" if shared.shared_with else ""
    return (*tested, TextTree(f"{_figures(shared.step)}; {shared_words(shared.shared_with)}{paid}{upkeep}"))


def _answer(answer: AnswerExplained, purpose: Purpose, what: str) -> str:
    """`what` becomes an answer, unless it is rows that looked something up that do."""
    condition = f" with {answer.sql}" if answer.sql else ""
    if answer.query is None:
        return f"{what}{condition} is kept as a joined row"
    if purpose is not Purpose.PAIRS:
        return _ANSWERS[purpose].format(condition=condition, of=f" of {answer.query}")
    if answer.into is None:
        return f"{what}{condition} is an answer of {answer.query}"
    return f"{what}{condition} goes into the groups of {answer.query}{_how_joined(answer.folded, answer.why_built)}"


def _path_answer(path: PathExplained) -> str:
    if path.purpose is not Purpose.PAIRS:
        padded = "" if path.padded is None else f", with NULL for all columns of {path.padded}"
        return f"{_ANSWERS[path.purpose].format(condition='', of='')}{padded}"
    what = "each match" if path.steps else f"{_subject(path)} that is kept"
    if path.into is None:
        return f"{what} is an answer"
    return f"{what} goes into the groups{_how_joined(path.folded, path.why_built)}"


def _how_joined(folded: str | None, why_built: str | None) -> str:
    """Of rows that are only aggregated, whether they are built."""
    if folded is not None:
        return f"; joined rows are not built (factorized: {folded} are folded)"
    return "" if why_built is None else f"; joined rows are built, as {why_built}"


def _takers(step: StepExplained) -> str:
    parts = []
    if step.queries:
        count = len(step.queries)
        parts.append(f"for {step.queries[0]}" if count == 1 else f"once for {count}: {names(step.queries)}")
    if step.maintains:
        parts.append(f"keeps up {names(step.keeps_up)}")
    return "; ".join(parts)
