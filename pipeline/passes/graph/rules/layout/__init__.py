"""Rules of data movement: reshapes, transposes, slices, and constants held twice."""
