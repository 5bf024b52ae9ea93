"""Keys, orders and bits: which rows of two sorted runs meet, and who wants each pair."""
