"""Hold the sources of a library: header, C, weights, and the assembly of its kernels."""
