"""One suite a file: what it runs and which figures it gives."""
