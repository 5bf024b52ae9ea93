"""The plan: plain data that the optimizer writes and the runtime reads. No logic beyond validation and printing."""
