"""Many queries in small batches that never end: the points of suite `steady`."""
