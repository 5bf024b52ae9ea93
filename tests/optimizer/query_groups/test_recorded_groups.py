"""Query groups under AJoin's cost, as files: uses and the groups that come out, with their costs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.paper_costs.ajoin import AJoinCost, KeyedRow, RowSets, cost_of_row_sets
from dovetail.optimizer.query_groups.group_queries import GroupCost, Groups, JoinUse, group_uses
from dovetail.query.expression import Column, Expression
from dovetail.query.types import BOOLEAN

RULE = "\n----\n"
RECORDED = sorted((Path(__file__).parent / "groups").glob("*.txt"))


def selection(text: str) -> Expression:
    return Column("row", text, BOOLEAN)


def cost_apart(uses: Sequence[JoinUse], cost: GroupCost) -> float:
    return sum(cost.cost((use,)) for use in uses)


def cost_together(group: Sequence[JoinUse], cost: GroupCost) -> float:
    """Uses with equal selections count once."""
    return cost.cost(list({(use.a_text, use.b_text): use for use in group}.values()))


def read_case(text: str) -> tuple[list[JoinUse], AJoinCost]:
    """Lines «query: rows of a | rows of b»; a row is a number and its key."""
    a, b, uses = {}, {}, []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            query, _, wanted = line.partition(": ")
            a_text, b_text = wanted.split(" | ")
            for side, rows in ((a, a_text), (b, b_text)):
                side[selection(rows)] = frozenset(KeyedRow(int(row[:-1]), row[-1]) for row in rows.split())
            uses.append(JoinUse(query, selection(a_text), selection(b_text)))
    return uses, cost_of_row_sets(RowSets(a), RowSets(b))


def groups_text(edge: str, groups: Groups, cost: GroupCost) -> str:
    """A line per group, as the paper writes them, with what it costs and what its members would cost apart."""
    lines = []
    for number, group in enumerate(groups, 1):
        line = f"{edge}.G{number} = {{{', '.join(use.query for use in group)}}}: {cost_together(group, cost):.6g}"
        if len(group) > 1:
            line += f" shared, {cost_apart(group, cost):.6g} separate"
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_groups_are_the_recorded_ones(path: Path) -> None:
    """REWRITE=1 writes what comes out now; the difference is then reviewed like code."""
    text, _, expected = path.read_text(encoding="utf-8").partition(RULE)
    uses, cost = read_case(text)
    found = groups_text("a-b", group_uses(uses, cost), cost) + "\n"
    if os.environ.get("REWRITE"):
        path.write_text(f"{text}{RULE}{found}", encoding="utf-8")
        return
    assert found == expected


def test_there_are_recorded_groups() -> None:
    assert len(RECORDED) >= 2
