"""Lower single operators to kernels of our own: `relax.topk`, transposed convolutions."""
