"""Crashes, retries and late things on demand."""
