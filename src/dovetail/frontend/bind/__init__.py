"""Names, types and functions of a parsed query: from syntax to typed expressions."""
