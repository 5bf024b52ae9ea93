"""The operators in one process: for tests, for small batches inside a single task, and for reading along."""
