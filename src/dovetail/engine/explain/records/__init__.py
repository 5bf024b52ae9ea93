"""What EXPLAIN says, as plain records: text and JSON are both made from these and from nothing else.

The names of the fields are the keys of the JSON form. None stands for what is not known, never 0. What is called a name
is as users wrote it: an alias in a query, a stream in the plan of all queries.
"""
