"""Executes a plan, batch by batch. The operators know no Spark; `spark/` and `local/` drive them."""
