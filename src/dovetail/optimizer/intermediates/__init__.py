"""Joins that are kept as stores: which could be, who maintains them, and queries that use them."""
