"""Runs every program and command of the pages as a new user would: see `__main__`."""
