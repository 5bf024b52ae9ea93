"""SharedWith (S3): how the rows that one use has in a key group fall on the key groups of another use of the store.

of the 6 rows that Q1 places in G1, 3 are in G1 of Q2 and 3 in G8: SharedWith(Q1, G1, Q2) = {G1: 1/2, G8: 1/2}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dovetail.stats.key_group_sample import NO_GROUP, KeyGroupSample


@dataclass(frozen=True)
class Overlap:
    """Shares of the rows of a key group by the other use's key group; what is left to 1 the other use does not place.

    `rows` is how many sampled rows of equal weight this is known from; 0 if nothing is known.
    """

    share_by_group: Mapping[int, float]
    rows: float

    def __post_init__(self) -> None:
        if sum(self.share_by_group.values()) > 1 + 1e-9:
            raise ValueError("shares of a whole add up to more than 1")

    def share(self, group: int) -> float:
        return self.share_by_group.get(group, 0.0)

    def error(self, group: int) -> float:
        """About two standard deviations of the share; as if one more row had been in the group and one had not, so that
        few rows never claim to know for certain.
        """
        if self.rows == 0:
            return 1.0
        share = (self.share(group) * self.rows + 1) / (self.rows + 2)
        return 2 * math.sqrt(share * (1 - share) / self.rows)


NOTHING_KNOWN = Overlap({}, 0.0)


class SharedWith:
    """The answer for every pair of uses of a store, from one sample of its rows."""

    def __init__(self, sample: KeyGroupSample) -> None:
        self._sample = sample

    def __call__(self, source: str, group: int, target: str) -> Overlap:
        """How the rows that use `source` places in `group` fall on the key groups of use `target`."""
        weighted = self._sample.weighted_rows((source, target))
        if weighted is None:
            return NOTHING_KNOWN
        is_own = weighted.groups[0] == group
        weights, targets = weighted.weights[is_own], weighted.groups[1, is_own]
        if not len(weights):
            return NOTHING_KNOWN
        found, place = np.unique(targets, return_inverse=True)
        shares = np.bincount(place, weights) / weights.sum()
        share_by_group = dict(zip(found.tolist(), shares.tolist(), strict=True))
        share_by_group.pop(NO_GROUP, None)
        return Overlap(share_by_group, weighted.sampled_of(is_own))
