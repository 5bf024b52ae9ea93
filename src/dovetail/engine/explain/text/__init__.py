"""The records of EXPLAIN as text: a sentence for each thing, its figures below. Long lists are cut, in JSON none is."""
