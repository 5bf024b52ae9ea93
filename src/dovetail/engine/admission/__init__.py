"""What a query would take, and who takes too much: estimates and limits."""
