"""What every other folder may use: ids, errors, clock, text trees. Standard library only."""
