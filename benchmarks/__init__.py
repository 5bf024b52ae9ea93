"""Benchmark suites against Spark and DuckDB, on the same data, with equal answers. Run from a clone."""
