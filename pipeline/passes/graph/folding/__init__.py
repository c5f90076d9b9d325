"""Fold constants: calls of kernels on constants alone become constants."""
