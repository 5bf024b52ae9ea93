"""Routes by subject: each file makes a router."""
