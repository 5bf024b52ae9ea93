"""Last steps whose joined rows are not built: counted and summed instead (D4)."""
