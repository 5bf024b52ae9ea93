"""What developers run beside the tests: the walk of a query, planted bugs. Not part of the installed package."""
