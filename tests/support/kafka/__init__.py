"""A real Kafka broker on loopback."""
