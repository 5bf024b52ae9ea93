"""One batch from its task to its commit: what tasks are told, what they report, the state that follows."""
