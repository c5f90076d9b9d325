"""Schedule windows over planes of floats: read in place, shuffled, unrolled, or by columns first."""
