"""Two revisions of Dovetail against each other: is a change slower?"""
