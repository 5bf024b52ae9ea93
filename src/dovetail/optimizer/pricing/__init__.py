"""What a plan costs, who pays how much of it, and where each figure comes from."""
