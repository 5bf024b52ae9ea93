"""Cost formulas of the papers, literally, to compare with."""
