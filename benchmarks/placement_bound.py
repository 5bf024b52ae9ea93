"""What no placement can cost less than, where the plain bound is far from tight: by eigenvalues.

Let X[u, v] be 1 where two nodes lie together, else 0.

    copies        an edge that a known placement cuts into k blocks costs at least k, less one for each pair of blocks
                  that meet: k - sum of the mean of X over the pairs of nodes between two blocks. One that is not cut
                  costs at least 2 - the mean of X over its pairs. Both hold for every X, with equality for the known.
    slowest       no less than the mean over all work of what its partition has: loads' X loads / sum of loads
    so            cost >= constant - <A, X> for a matrix A

For P partitions X - 1/P has no negative eigenvalue and 1 - 1/P on its diagonal, so <A, X - 1/P> is at most
(1 - 1/P) * sum of d for any diagonal d that no eigenvalue of A exceeds. The best d comes from unit vectors, one a node,
each turned in its turn to where the others pull it (the mixing method for such programs); one eigenvalue at the end
makes it a bound whatever the vectors are.
"""

from __future__ import annotations

import numpy as np

from dovetail.optimizer.placement.problem import PlacementProblem
from dovetail.optimizer.placement.solve import PlacementSolution
from dovetail.optimizer.placement.solvers.hypergraph import ABSENT, Floats, Hypergraph, Ints, build_hypergraph
from dovetail.optimizer.placement.solvers.search import plain_bound

SWEEPS = 25
MOST_NODES = 2_100
"""Eigenvalues of larger matrices take too long."""
START_NOISE = 0.1


def prove(problem: PlacementProblem, solution: PlacementSolution) -> float:
    """The best bound that can be had for a solution that is at hand; takes a second or two with a thousand nodes."""
    nodes = build_hypergraph(problem)
    by_eigenvalues = bound_by_eigenvalues(nodes.graph, nodes.parts(solution.partition_by_group))
    return min(max(solution.bound, by_eigenvalues), solution.cost.seconds)


def bound_by_eigenvalues(graph: Hypergraph, known: Ints, sweeps: int = SWEEPS) -> float:
    """At least the plain bound; the better the known placement, the tighter."""
    plain = plain_bound(graph)
    if graph.partition_count == 1 or not len(graph.edges) or graph.node_count > MOST_NODES:
        return plain
    copies, together = _copies_by_pairs(graph, known)
    constant, matrix = graph.fixed_s + copies, together
    for loads in graph.loads:
        total = loads.sum()
        if total:
            matrix = matrix - np.outer(loads, loads) / total
    constant -= float(matrix.sum()) / graph.partition_count
    inner = 1 - 1 / graph.partition_count
    return max(plain, constant - inner * _diagonal_above(matrix, graph.partition_count, known, sweeps))


def _copies_by_pairs(graph: Hypergraph, known: Ints) -> tuple[float, Floats]:
    """Shipping costs at least the first, less the sum of the second over pairs of nodes that lie together."""
    count, width = graph.node_count, graph.edges.shape[1]
    is_node = graph.edges != ABSENT
    places = np.where(is_node, known[graph.edges], -1 - np.arange(width))
    is_same = places[:, :, None] == places[:, None, :]
    sizes = is_same.sum(axis=2)
    blocks = np.where(is_node, 1 / sizes, 0.0).sum(axis=1).round()
    is_whole = blocks == 1
    constant = float(np.dot(graph.weights, blocks + is_whole))
    table = np.zeros(count * count)
    for one in range(width):
        for other in range(one + 1, width):
            same = is_same[:, one, other]
            pairs = np.where(same, sizes[:, one] * (sizes[:, one] - 1) / 2, sizes[:, one] * sizes[:, other])
            counts = is_node[:, one] & is_node[:, other] & (~same | is_whole)
            keys = graph.edges[counts, one] * count + graph.edges[counts, other]
            table += np.bincount(keys, (graph.weights[counts] / pairs[counts]), minlength=count * count)
    matrix = table.reshape(count, count)
    return constant, (matrix + matrix.T) / 2


def _diagonal_above(matrix: Floats, partition_count: int, known: Ints, sweeps: int) -> float:
    """The sum of a diagonal that no eigenvalue of the matrix exceeds, so small as the vectors find it."""
    count = len(matrix)
    own = np.diag(matrix).copy()
    others = matrix - np.diag(own)
    rank = max(partition_count, int(np.sqrt(2 * count)) + 1)
    vectors = np.random.default_rng(count).normal(scale=START_NOISE, size=(count, rank))
    vectors[:, :partition_count] += (np.eye(partition_count) - 1 / partition_count)[known]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for _ in range(sweeps):
        for node in range(count):
            pull = others[node] @ vectors
            length = float(np.sqrt(pull @ pull))
            if length > 0:
                vectors[node] = pull / length
    diagonal = np.linalg.norm(others @ vectors, axis=1)
    excess = float(np.linalg.eigvalsh(others - np.diag(diagonal))[-1])
    return float(own.sum() + diagonal.sum() + count * max(excess, 0.0))
