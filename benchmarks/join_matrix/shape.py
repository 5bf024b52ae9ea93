"""The join-matrix (B10): the baseline that stores every row in a whole line of cells, to be measured against.

                 column 0   column 1
        row 0    cell 0     cell 1        a row of the row side goes to one line, at random: to all its cells
        row 1    cell 2     cell 3        a row of the column side goes to one column: to all its cells

Any row of one side and any of the other are together in exactly one cell, which joins what it holds by any condition
and asks nobody. The price is memory: with r x c cells the row side is stored c times, the column side r times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class JoinMatrix:
    """Cells are numbered line by line; each is a partition."""

    row_store: str
    column_store: str
    rows: int
    columns: int

    def __post_init__(self) -> None:
        if self.row_store == self.column_store:
            raise ValueError("a matrix has two sides")
        if min(self.rows, self.columns) < 1:
            raise ValueError("a matrix has a cell")

    @staticmethod
    def of(stores: tuple[str, ...], cell_count: int) -> JoinMatrix:
        """As square as it gets: of all rectangles of so many cells it stores least where sides are equally large."""
        row_store, column_store = sorted(stores)
        rows = max(each for each in range(1, math.isqrt(cell_count) + 1) if cell_count % each == 0)
        return JoinMatrix(row_store, column_store, rows, cell_count // rows)

    @property
    def cell_count(self) -> int:
        return self.rows * self.columns

    def line_count(self, store: str) -> int:
        """To how many lines the rows of a store are dealt out."""
        return self.rows if store == self.row_store else self.columns

    def copy_count(self, store: str) -> int:
        """In how many cells a row of the store lies."""
        return self.columns if store == self.row_store else self.rows

    def cells(self, store: str, line: int) -> tuple[int, ...]:
        if store == self.row_store:
            return tuple(line * self.columns + column for column in range(self.columns))
        return tuple(row * self.columns + line for row in range(self.rows))

    def __str__(self) -> str:
        return f"join-matrix of {self.rows} x {self.columns} cells"
