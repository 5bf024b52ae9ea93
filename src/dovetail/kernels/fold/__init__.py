"""Rows of a group into counts, exact sums, extremes and distinct counts."""
