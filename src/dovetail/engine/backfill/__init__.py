"""Answers from before a query: old rows run again beside the batches, and a commit adopts what is found."""
