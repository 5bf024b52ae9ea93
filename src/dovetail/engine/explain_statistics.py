"""What EXPLAIN says of the data beside stores, indexes and steps, each figure with where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dovetail.core.text_tree import TextTree
from dovetail.engine.observe_batch import edge_of_step
from dovetail.plan.probe_tree import ProbeNode
from dovetail.plan.shared_plan import SharedPlan
from dovetail.plan.store_plan import StorePlan
from dovetail.query.expression import TRUE, Expression
from dovetail.query.stream import Stream
from dovetail.stats.catalog import StatsCatalog

_MAX_SELECTIONS = 8


@dataclass(frozen=True)
class StatisticsText:
    """Lines about a plan's parts; what is neither known nor used for planning is left out."""

    plan: SharedPlan
    streams: Mapping[str, Stream]
    stats: StatsCatalog

    def annotated(self, tree: TextTree) -> TextTree:
        """The plan's text with figures where it shows stores and steps."""
        stores, probes, *others = tree.children
        return TextTree(
            tree.line,
            (
                TextTree(
                    stores.line,
                    tuple(map(self.with_store_figures, stores.children, self.plan.stores)),
                ),
                TextTree(
                    probes.line,
                    tuple(
                        TextTree(own.line, self._with_steps(own.children, probe_tree.children, (probe_tree.start,)))
                        for own, probe_tree in zip(probes.children, self.plan.trees, strict=True)
                    ),
                ),
                *others,
            ),
        )

    def with_store_figures(
        self, tree: TextTree, store: StorePlan, selections: Iterable[Expression] | None = None
    ) -> TextTree:
        """The store's text with its rate, its indexes' keys, and what these selections (all, if None) let pass."""
        indexes = [
            TextTree(f"{child.line}{self._key_text(store.id, index.id)}")
            for child, index in zip(tree.children, store.indexes, strict=True)
        ]
        tested = [s for s in (store.tested_selections if selections is None else selections) if s != TRUE]
        shares = [TextTree(f"{selection}: passes {self.stats.selection(selection, store.id)}") for selection in tested]
        more = [TextTree(f"{len(shares) - _MAX_SELECTIONS} more selections")] if len(shares) > _MAX_SELECTIONS else []
        return TextTree(tree.line, (*self._row_lines(store), *indexes, *shares[:_MAX_SELECTIONS], *more))

    def step_text(self, node: ProbeNode, path: tuple[str, ...]) -> str:
        """How many rows the step finds, and how probable a match is; `path` are the stores of the probing members."""
        texts = []
        found = self.stats.step(node.id)
        if found is not None:
            texts.append(f"finds {found} per row")
        stream_by_store = {store.id: store.stream for store in self.plan.stores if store.stream in self.streams}
        if {*path, node.step.target} <= set(stream_by_store):
            edge = edge_of_step(node, [stream_by_store[store] for store in path], stream_by_store[node.step.target])
            texts.append(f"match {self.stats.match(edge)}")
        return "".join(f"; {text}" for text in texts)

    def _with_steps(
        self, trees: tuple[TextTree, ...], nodes: tuple[ProbeNode, ...], path: tuple[str, ...]
    ) -> tuple[TextTree, ...]:
        """What a step emits stands before the steps that follow it, and stays as it is."""
        before = len(trees) - len(nodes)
        steps = (
            TextTree(
                f"{tree.line}{self.step_text(node, path)}",
                self._with_steps(tree.children, node.children, (*path, node.step.target)),
            )
            for tree, node in zip(trees[before:], nodes, strict=True)
        )
        return (*trees[:before], *steps)

    def _row_lines(self, store: StorePlan) -> list[TextTree]:
        stats, stream = self.stats, store.stream
        figures = (
            ("a batch", stats.batch_rows(stream)),
            ("a second of event time", stats.rows_per_s(stream)),
            ("of them late", stats.late_share(stream)),
            ("stored", stats.stored_rows(store.id)),
        )
        texts = [f"{figure} {what}" for what, figure in figures if figure is not None]
        return [TextTree(f"rows: {', '.join(texts)}")] if texts else []

    def _key_text(self, store: str, index: str) -> str:
        distinct = self.stats.distinct(store, index)
        text = "" if distinct is None else f"; distinct keys: {distinct}"
        shares = sorted(self.stats.heavy_share_by_code(store, index).values(), reverse=True)
        if shares:
            text += f"; frequent keys: {len(shares)}, the first has {shares[0]:.1%} of the rows"
        return text
