"""What a finished batch says of the data: counts of its tasks become figures with names."""
