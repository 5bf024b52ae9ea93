"""The parts that solvers are made of, each against its plain definition."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.partition.random_placements import random_placement_problem
from dovetail.optimizer.placement.problem import Cell, PlacedStream, PlacementCosts, PlacementProblem
from dovetail.optimizer.placement.solvers.budget import Budget
from dovetail.optimizer.placement.solvers.class_groups import lay_over, nodes_by_class, pair_up
from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Hypergraph, Ints, build_hypergraph
from dovetail.optimizer.placement.solvers.merge_groups import merge_similar
from dovetail.optimizer.placement.solvers.merge_partitions import place_merged_partitions
from dovetail.optimizer.placement.solvers.moves import build_tables, descend, move, shipping, slowest
from dovetail.optimizer.placement.solvers.pair_tree import place_pair_tree
from dovetail.optimizer.placement.solvers.renumber import renumber_like
from dovetail.optimizer.placement.solvers.search import balanced_start, least_slowest, search
from dovetail.optimizer.placement.solvers.streams_apart import connected_parts


@pytest.fixture(scope="module")
def graph() -> Hypergraph:
    return build_hypergraph(random_placement_problem(4, 4, 16, 3)).graph


def random_parts(graph: Hypergraph, seed: int) -> Ints:
    return np.random.default_rng(seed).integers(graph.partition_count, size=graph.node_count)


def test_tables_after_moves_are_those_of_the_new_placement(graph: Hypergraph) -> None:
    rng = np.random.default_rng(1)
    tables = build_tables(graph, random_parts(graph, 1))
    for _ in range(200):
        node, target = int(rng.integers(graph.node_count)), int(rng.integers(graph.partition_count))
        if target != tables.parts[node]:
            before, change = shipping(tables), tables.arriving[node, target] - tables.leaving[node]
            move(tables, node, target)
            assert shipping(tables) == pytest.approx(before + change)
    fresh = build_tables(graph, tables.parts)
    for name in ("numbers", "arriving", "leaving", "loads"):
        assert getattr(tables, name) == pytest.approx(getattr(fresh, name), abs=1e-12), name
    assert graph.fixed_s + shipping(tables) + slowest(tables) == pytest.approx(graph.cost(tables.parts))


def test_pass_says_what_it_found(graph: Hypergraph) -> None:
    start = random_parts(graph, 2)
    tables = build_tables(graph, start)
    ship_s, cost, best = descend(tables, least_slowest(graph), 2.0, shipping(tables), 30)
    assert graph.fixed_s + cost == pytest.approx(graph.cost(best))
    assert graph.cost(best) < graph.cost(start)
    assert ship_s == pytest.approx(graph.ship_s(tables.parts))


def test_contracted_graph_costs_what_its_nodes_do(graph: Hypergraph) -> None:
    clusters = merge_similar(graph)
    assert clusters is not None
    coarse = graph.contract(clusters)
    assert graph.node_count > coarse.node_count >= graph.node_count / 2
    for seed in range(5):
        parts = random_parts(coarse, seed)
        assert coarse.cost(parts) == pytest.approx(graph.cost(parts[clusters]))


def test_merging_within_a_placement_keeps_it(graph: Hypergraph) -> None:
    parts = random_parts(graph, 4)
    clusters = merge_similar(graph, within=parts)
    assert clusters is not None
    for cluster in np.unique(clusters):
        assert len(set(parts[clusters == cluster])) == 1


def test_groups_that_share_all_rows_are_merged_first() -> None:
    cells = (*(Cell((group, 15 - group), 10.0) for group in range(16)), Cell((0, 0), 1.0))
    problem = PlacementProblem(16, 2, 2, (PlacedStream("s", (0, 1), cells),), PlacementCosts(1.0, 1.0))
    clusters = merge_similar(build_hypergraph(problem).graph)
    assert clusters is not None
    assert all(clusters[group] == clusters[16 + 15 - group] for group in range(1, 15))


def test_restricted_graph_has_only_its_nodes(graph: Hypergraph) -> None:
    nodes = nodes_by_class(graph)[1]
    part = graph.restrict(nodes)
    assert part.loads == pytest.approx(graph.loads[:, nodes])
    # Key groups of one class share no tuple.
    assert not len(part.edges)


def test_pairs_of_classes_have_all_nodes_and_most_in_common(graph: Hypergraph) -> None:
    pairs = pair_up(graph, nodes_by_class(graph))
    assert sorted(np.concatenate(pairs).tolist()) == list(range(graph.node_count))
    assert len(pairs) == 2


def test_tree_and_merged_partitions_place_every_node(graph: Hypergraph) -> None:
    def place(part: Hypergraph) -> Ints:
        return search(part, balanced_start(part), Budget())

    for parts in (place_pair_tree(graph, place), place_merged_partitions(graph, 2, place)):
        assert parts is not None
        assert set(parts.tolist()) <= set(range(graph.partition_count))
        assert graph.cost(parts) < graph.cost(random_parts(graph, 5))
    assert place_merged_partitions(graph, 3, place) is None


def test_groups_are_laid_over_each_other_evenly() -> None:
    loads = np.array([[5.0, 1.0, 1.0, 5.0]])
    graph = Hypergraph(2, np.zeros((0, 2), dtype=np.int64), np.zeros(0), loads, np.array([0, 0, 1, 1]))
    parts = lay_over(graph, [np.array([0, 1]), np.array([2, 3])], [np.array([0, 1]), np.array([1, 0])])
    assert graph.part_loads(parts).tolist() == [[6.0, 6.0]]


def test_classes_that_edges_connect_are_one_part() -> None:
    edges = np.array([[ABSENT, 0, 2], [1, 2, 3]])
    graph = Hypergraph(2, edges, np.ones(2), np.ones((1, 6)), np.array([0, 1, 2, 3, 4, 4]))
    assert [part.tolist() for part in connected_parts(graph)] == [[0, 1, 2, 3], [4, 5]]


def test_numbers_are_those_of_before() -> None:
    graph = Hypergraph(3, np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.ones((1, 6)), np.zeros(6, dtype=np.int64))
    parts = np.array([1, 1, 2, 2, 0, 0])
    assert renumber_like(graph, parts, np.array([0, 0, 1, 1, 2, 1])).tolist() == [0, 0, 1, 1, 2, 2]
