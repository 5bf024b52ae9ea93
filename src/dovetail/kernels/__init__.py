"""Pure functions on arrays: hashing, matching, gathering, evaluating. They know no plan and no file."""
