"""Of stores: some rows with a bit for each selection, so that one knows what selections pass together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise

import numpy as np

from dovetail.engine.observe.finished_batch import FinishedBatch
from dovetail.kernels.select.select_rows import Mask, spread_rows, unpack_sample
from dovetail.runtime.report import QuerySets
from dovetail.stats.selection_sample import SAMPLED_ROWS_A_BATCH, RowsSampled
from dovetail.store.bucket_file import by_store


def rows_sampled(batch: FinishedBatch) -> dict[str, RowsSampled]:
    """By store; each task's rows in proportion to those that came to it."""
    pieces_by_store = by_store(batch.report.query_sets)
    return {
        store.id: _sampled(pieces_by_store[store.id], [str(each) for each in store.tested_selections])
        for store in batch.plan.stores
        if store.id in pieces_by_store
    }


def in_proportion(rows: Iterable[int], wanted: int) -> list[int]:
    """How many of `wanted` rows to take from each piece.

    >>> in_proportion([10, 20, 10], 8)
    [2, 4, 2]
    """
    ends = list(accumulate(rows, initial=0))
    return [upper * wanted // ends[-1] - lower * wanted // ends[-1] for lower, upper in pairwise(ends)]


def _sampled(pieces: list[QuerySets], selections: list[str]) -> RowsSampled:
    """Selections that failed in any task are left out."""
    failed = {place for piece in pieces for place in piece.failed_places}
    parts = in_proportion((piece.rows for piece in pieces), SAMPLED_ROWS_A_BATCH)
    bits = np.concatenate([_piece_bits(piece, failed, part) for piece, part in zip(pieces, parts, strict=True)], axis=1)
    texts = [text for place, text in enumerate(selections) if place not in failed]
    columns = np.packbits(bits, axis=1, bitorder="little")
    passed = {text: int.from_bytes(column.tobytes(), "little") for text, column in zip(texts, columns, strict=True)}
    return RowsSampled(bits.shape[1], passed)


def _piece_bits(piece: QuerySets, failed: set[int], part: int) -> Mask:
    """At most `part` of its rows, without selections that failed in any task."""
    bits = unpack_sample(bytes.fromhex(piece.bits), piece.sampled_rows)
    if failed:
        tested = [place for place in range(len(bits) + len(piece.failed_places)) if place not in piece.failed_places]
        bits = bits[[row for row, place in enumerate(tested) if place not in failed]]
    return bits.take(spread_rows(piece.sampled_rows, part), axis=1)
