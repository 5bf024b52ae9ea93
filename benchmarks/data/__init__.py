"""Generated streams and query sets."""
