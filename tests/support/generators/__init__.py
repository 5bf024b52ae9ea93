"""Random streams, rows, queries and plans."""
