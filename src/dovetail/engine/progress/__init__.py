"""The figures of a batch as records: what the next batch goes by, and what is printed for users."""
