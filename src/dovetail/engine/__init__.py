"""Where the parts meet: registry, planning, batches, commit. Drives any runtime; imports none of them."""
