"""The systems that are measured: Dovetail, Spark, DuckDB, and the floor of reading alone."""
