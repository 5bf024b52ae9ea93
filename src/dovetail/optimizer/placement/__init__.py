"""Where key groups live, chosen for all queries together (SASPAR): few copies of each tuple, and an even load."""
