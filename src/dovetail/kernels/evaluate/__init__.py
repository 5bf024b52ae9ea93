"""Expressions over arrays, with Spark's meaning."""
