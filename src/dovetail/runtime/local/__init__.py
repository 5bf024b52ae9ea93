"""The operators in one process, without Spark: for tests and for reading along."""
