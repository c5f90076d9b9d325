"""Lower single operators to kernels of our own: float16 sums, cumulative sums, extremes, transposed convolutions."""
