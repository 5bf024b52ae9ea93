"""SQL text to `JoinQuery`, statements to records. The only importer of sqlglot.

Passes, one a file: `parse_sql` (text to syntax tree), `bind_names` (relations, columns, derived
tables), `bind_expressions` (types and coercion), `to_join_query` (predicates to equalities, time
bounds, selections, residuals). `unsupported` holds every refusal with its hint. `parse_statement`
reads the statements around a SELECT.
"""
