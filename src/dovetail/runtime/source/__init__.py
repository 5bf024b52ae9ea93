"""Rows come in: selected, indexed, written as buckets, shipped where keys are placed, merged later."""
