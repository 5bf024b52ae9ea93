"""The plan between batches: when it changes, what of it may be used yet, where keys lie, how many units run."""
