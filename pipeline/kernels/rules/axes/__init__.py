"""Rewrite the axes of a kernel before it is tiled, and restore its shapes after."""
