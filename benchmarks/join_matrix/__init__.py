"""A join-matrix, to measure what it stores beside what Dovetail does (B10)."""
