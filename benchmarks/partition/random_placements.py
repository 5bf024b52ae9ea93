"""Random workloads for the placement of key groups, with the traits of real ones.

Every query joins two streams by a key of its own, so it is a key class with one use on either side. Most queries take
part in one large stream (as fourteen TPC-H queries do in lineitem), the rest in smaller ones. Keys come in families: an
order, its customer and its ship day hang together, a part and its brand do, but orders say nothing of parts. So a row
has a hidden place in each family, drawn by Zipf's law; a key follows the place of its family, most of them for all rows
and some for nearly all. Some queries select rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.optimizer.placement.problem import Cell, PlacedStream, PlacementCosts, PlacementProblem

SAMPLED_ROWS = 20_000
SHARE_OF_SMALL_STREAM = 0.3
FAMILIES = 2
FOLLOWING = (1.0, 1.0, 1.0, 0.95, 1.0, 0.9)
"""Of the first, second ... query: the share of rows whose key follows the family's place."""
WANTED = (1.0, 1.0, 0.6, 1.0)
"""Of the first, second ... query: the share of rows that it selects."""
ZIPF_EXPONENT = 0.6
SHIP_S, PROCESS_S = 2e-6, 1e-6

Groups = NDArray[np.int64]


def random_placement_problem(queries: int, partitions: int, groups: int, seed: int) -> PlacementProblem:
    rng = np.random.default_rng([queries, groups, seed])
    places = [rng.permutation(groups) for _ in range(queries)]
    small_count = max(1, queries // 3)
    uses: list[list[int]] = [[] for _ in range(1 + small_count)]
    for query in range(queries):
        is_within_small = query % 4 == 3 and small_count > 1
        sides = 1 + rng.choice(small_count, size=1 + is_within_small, replace=False)
        for stream in (*([] if is_within_small else [0]), *sides.tolist()):
            uses[stream].append(query)
    streams = tuple(
        _random_stream(f"s{number}", tuple(classes), places, rng) for number, classes in enumerate(uses) if classes
    )
    costs = PlacementCosts(ship_s=SHIP_S, process_s=PROCESS_S, senders=partitions)
    return PlacementProblem(groups, partitions, queries, streams, costs)


def _random_stream(name: str, classes: tuple[int, ...], places: list[Groups], rng: np.random.Generator) -> PlacedStream:
    rows = int(SAMPLED_ROWS * (1.0 if name == "s0" else SHARE_OF_SMALL_STREAM))
    groups = len(places[0])
    hidden = [_zipf(groups, rows, rng) for _ in range(FAMILIES)]
    columns = []
    for query in classes:
        follows = rng.random(rows) < FOLLOWING[query % len(FOLLOWING)]
        column = places[query][np.where(follows, hidden[query % FAMILIES], _zipf(groups, rows, rng))]
        is_wanted = rng.random(rows) < WANTED[query % len(WANTED)]
        columns.append(np.where(is_wanted, column, -1))
    found, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    cells = tuple(
        Cell(tuple(None if group < 0 else group for group in line), float(count))
        for line, count in zip(found.tolist(), counts.tolist(), strict=True)
    )
    return PlacedStream(name, classes, cells)


def _zipf(groups: int, rows: int, rng: np.random.Generator) -> Groups:
    shares = 1.0 / np.arange(1, groups + 1) ** ZIPF_EXPONENT
    return rng.choice(groups, size=rows, p=shares / shares.sum())
