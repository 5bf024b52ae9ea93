"""The steps from queries to a shared plan, one a file."""
