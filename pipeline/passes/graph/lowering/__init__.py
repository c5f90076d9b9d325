"""Lower single operators to kernels of our own: float16 sums, transposed convolutions."""
