"""From the engine to the records of EXPLAIN."""
