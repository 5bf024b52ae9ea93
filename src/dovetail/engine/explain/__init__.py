"""EXPLAIN: the running plan as records, and these as text or JSON."""
