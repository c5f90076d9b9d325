"""Expand operators and forms in lowered, vectorised kernels, before LLVM."""
