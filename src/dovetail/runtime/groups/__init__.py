"""GROUP BY: partial groups, their state, windows that close, answers."""
