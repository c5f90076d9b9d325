"""Make kernels the C functions of a library: merge equal ones, outline stages, take raw pointers."""
