"""Committed answers carried to sinks, in order, each at least once."""
