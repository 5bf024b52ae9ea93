"""TPC-H tables as streams, and queries over them."""
