"""The selections of all queries over the same rows, decided together."""
