"""Committed answers as pages and events."""
