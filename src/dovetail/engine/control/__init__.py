"""Who asks for what: statements, the changelog of queries and streams, the registry of what became of them."""
