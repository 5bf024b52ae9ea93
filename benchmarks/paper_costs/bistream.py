"""BiStream's cost models (B10): what a join-biclique and a join-matrix store and send, and what scaling out gains.

    join-biclique   every tuple stored once; sent to the unit that stores it, and to a subgroup that it probes
    join-matrix     every tuple stored in, and sent to, a whole row or column of cells

Tuples are counted, not bytes: with a tuple size per relation each term is multiplied by it. `bench` and tests hold
them against what the engine measures.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Biclique:
    """`r_units` hold R in `r_subgroups`, `s_units` hold S; the engine's partitions hold both, so all are units of both.

    One subgroup is random routing, as many as units is hash.
    """

    r_units: int
    s_units: int
    r_subgroups: int
    s_subgroups: int

    def stored(self, r_tuples: float, s_tuples: float) -> float:
        """Equation 1, without the tuples that wait in the network."""
        return r_tuples + s_tuples

    def sent(self, r_tuples: float, s_tuples: float) -> float:
        """Equation 5.

        >>> Biclique(4, 4, 4, 4).sent(100, 100), Biclique(4, 4, 1, 1).sent(100, 100)
        (400.0, 1000.0)
        """
        return (self.s_units / self.s_subgroups + 1) * r_tuples + (self.r_units / self.r_subgroups + 1) * s_tuples

    def scaling_gain(self) -> float:
        """The share of a new unit's memory that holds new tuples: nothing is replicated to it."""
        return 1.0


@dataclass(frozen=True)
class Matrix:
    """R is dealt out to `rows`, S to `columns`; every cell is a unit."""

    rows: int
    columns: int

    def stored(self, r_tuples: float, s_tuples: float) -> float:
        """Equation 2.

        >>> Matrix(4, 4).stored(100, 100) / Biclique(8, 8, 8, 8).stored(100, 100)
        4.0
        """
        return self.columns * r_tuples + self.rows * s_tuples

    def sent(self, r_tuples: float, s_tuples: float) -> float:
        """Equation 6: what a cell receives it stores."""
        return self.stored(r_tuples, s_tuples)

    def scaling_gain(self, s_tuples: float, capacity: float) -> float:
        """Equation 3: of one more row for R, whose every cell must also hold its column of S.

        >>> Matrix(4, 4).scaling_gain(s_tuples=200, capacity=100)
        0.5
        """
        return 1 - s_tuples / self.columns / capacity
