"""Rows meet: stores as a task sees them, probes, partial results, rows that stay alone."""
