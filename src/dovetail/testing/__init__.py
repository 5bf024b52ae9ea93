"""Oracles, generators and an in-process session for tests."""
