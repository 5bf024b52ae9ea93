"""What a query means: types, expressions, streams, join queries. No SQL text, no cost, no file."""
