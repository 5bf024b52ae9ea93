"""Queries that come and go: the scenario of suite `adhoc`."""
