"""What is known of the data: given, observed or assumed figures, told apart by type."""
