"""The right answers, found another way."""
