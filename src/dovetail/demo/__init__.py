"""The papers' running example, live in a terminal."""
