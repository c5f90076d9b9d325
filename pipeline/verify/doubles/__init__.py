"""Compute a model in double precision, and with other orders of float sums: `DoubleReference`."""
