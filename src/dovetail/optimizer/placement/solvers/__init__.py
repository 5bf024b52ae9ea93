"""Placements sought: the exact program, local search, and SASPAR's seven shortcuts."""
