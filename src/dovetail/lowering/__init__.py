"""From the plan to arrays: what compiled code walks through."""
