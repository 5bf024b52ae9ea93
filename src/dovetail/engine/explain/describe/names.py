"""What users call the rows of a plan: streams where all queries are told of, aliases where one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.engine.explain.describe.look import Look
from dovetail.engine.explain.records.steps import KeyExplained, LookupExplained
from dovetail.plan.probe_tree import ProbeNode, member_name
from dovetail.plan.store_plan import ROW
from dovetail.query.expression import Column, Expression
from dovetail.query.sql_text import column_name, sql_text


@dataclass(frozen=True)
class Member:
    """A row of a growing result. A row of an intermediate is made of several: they have a name each."""

    name: str
    names: tuple[str, ...]

    def column(self, column: str) -> str:
        if len(self.names) == 1:
            return f"{self.names[0]}.{column}"
        place, _, of_member = column.partition(".")
        return f"{self.names[int(place)]}.{of_member}"


def stored_member(look: Look, store_id: str) -> Member:
    """A store's rows where no query is asked: by the names of streams."""
    kept = look.kept_by_store.get(store_id)
    if kept is not None:
        return Member(f"the kept join of {' and '.join(kept.intermediate.streams)}", kept.intermediate.streams)
    stream = look.plan.store(store_id).stream
    return Member(stream, (stream,))


def aliased_member(look: Look, store_id: str, aliases: Sequence[str]) -> Member:
    """The same of one query: `aliases` are what it calls the row, or the members of an intermediate's row."""
    if len(aliases) > 1:
        return Member(f"the kept join of {' and '.join(aliases)}", tuple(aliases))
    (alias,) = aliases
    stream = look.plan.store(store_id).stream
    return Member(stream if alias == stream else f"{alias} ({stream})", (alias,))


def lookup_of(node: ProbeNode, path: Sequence[Member], target: Member) -> LookupExplained:
    """`path` are the members so far. A new row's own columns need no relation; nor do those that are looked up."""
    index = node.step.index
    is_first = len(path) == 1 and len(path[0].names) == 1
    keys = [
        KeyExplained(
            stored_text(stored, target), sql_text(probing, column_name) if is_first else of_members(probing, path)
        )
        for stored, probing in zip(index.keys, node.step.probe_keys, strict=True)
    ]
    return LookupExplained(target.name, tuple(keys), None if index.order is None else stored_text(index.order, target))


def stored_text(expression: Expression, stored: Member) -> str:
    """Of one stored row: its columns need no relation unless it is a joined one."""
    return sql_text(expression, lambda column: column.name if len(stored.names) == 1 else stored.column(column.name))


def of_members(expression: Expression, members: Sequence[Member]) -> str:
    """An expression over members m0, m1 ... with the names that users know."""
    by_relation = {member_name(place): member for place, member in enumerate(members)}

    def text(column: Column) -> str:
        if column.relation == ROW:
            return members[-1].column(column.name)
        member = by_relation.get(column.relation)
        return str(column) if member is None else member.column(column.name)

    return sql_text(expression, text)
