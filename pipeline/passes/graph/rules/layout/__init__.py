"""Rules of data movement: reshapes, transposes, casts, concatenations, slices, and constants held twice."""
