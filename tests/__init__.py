"""Tests; what they share is in `tests.support`."""
