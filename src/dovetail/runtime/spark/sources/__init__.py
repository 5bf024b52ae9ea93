"""Where streams come from: opened, read once more, left out while they fail."""
