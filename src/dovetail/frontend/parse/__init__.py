"""Text to syntax: queries, statements, and the list of what is refused."""
