"""The joint problem solved: greedily, by local search, exactly, and all of them within one budget."""
