"""Which queries are planned as one, because they want much the same rows of a join (A5)."""
