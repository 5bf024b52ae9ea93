"""Queries as a service: a session behind HTTP, with tokens, limits, events and metrics (docs/service.md)."""
