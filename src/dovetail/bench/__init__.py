"""Benchmarks: `dovetail bench SUITE`. See `run.py` for the entry point and `workloads.py` for the data."""
